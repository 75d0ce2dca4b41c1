// SPDX-License-Identifier: Apache-2.0
// Sums beside the cells: what is added and taken off again leaves nothing but rounding, shared or
// not.
#include "runtime/sample/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { CELLS = 1000, BYTES = 1 << 20 };

static void check_cell(struct cairn_sample_cell *entries, uint32_t cell, bool is_shared) {
    struct weight small = weight_of(100, 512 << 10), large = weight_of(300 << 10, 512 << 10);
    assert_true(ledger_claim(cell));
    ledger_alloc(cell, &small, is_shared);
    ledger_alloc(cell, &large, is_shared);
    struct cairn_sample_cell *entry = &entries[cell];
    assert_int_equal(entry->extra_calls, small.extra + large.extra);
    ledger_free(cell, &small, is_shared);
    assert_int_equal(entry->extra_calls - entry->extra_frees, large.extra);
    ledger_save_peak(cell);
    assert_int_equal(entry->peak_extra, large.extra);
    assert_true(entry->peak_bytes_variance > 0.99 * large.bytes_variance &&
                entry->peak_bytes_variance < 1.01 * large.bytes_variance);
    ledger_free(cell, &large, is_shared);
    assert_true(entry->extra_calls == entry->extra_frees);
    assert_true(entry->allocated_variance == entry->freed_variance);
    assert_true(entry->calls_variance == entry->frees_variance);
}

static void test_sums(void **state) {
    (void)state;
    static uint64_t used;
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    struct region region = {
        .base = memory, .capacity_bytes = BYTES, .chunk_bytes = 64 << 10, .used_bytes = &used};
    ledger_open(region);
    check_cell((struct cairn_sample_cell *)memory, CELLS, false);
    check_cell((struct cairn_sample_cell *)memory, 1, true);
    assert_int_equal(used, (CELLS + 1) * sizeof(struct cairn_sample_cell));
    assert_false(ledger_claim(BYTES / sizeof(struct cairn_sample_cell)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
