// SPDX-License-Identifier: Apache-2.0
// Sums beside the cells: what is added and taken off again leaves nothing but rounding, shared or
// not.
#include "runtime/sample/sample_totals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { CELLS = 1000, BYTES = 1 << 20 };

static void check_cell(struct cairn_sample_entry *entries, uint32_t cell, bool is_shared) {
    struct weight small = weight_of(100, 512 << 10), large = weight_of(300 << 10, 512 << 10);
    assert_true(ledger_claim(cell));
    ledger_alloc(cell, 100, &small, is_shared);
    ledger_alloc(cell, 300 << 10, &large, is_shared);
    struct cairn_sample_cell *entry = &entries[cell].sums;
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
    check_cell((struct cairn_sample_entry *)memory, CELLS, false);
    check_cell((struct cairn_sample_entry *)memory, 1, true);
    assert_int_equal(used, (CELLS + 1) * sizeof(struct cairn_sample_entry));
    assert_false(ledger_claim(BYTES / sizeof(struct cairn_sample_entry)));
}

// Sizes of as many bits share a place, and keep the least and the most of them; those that come
// when all places are taken have none. A cell that all threads write has no sizes.
static void test_sizes(void **state) {
    (void)state;
    static const uint64_t sizes[] = {100, 127, 64, 5000, 0, UINT64_MAX, 300, 70};
    static uint64_t used;
    static struct cairn_sample_entry entries[4];
    struct region region = {
        .base = (uint8_t *)entries, .capacity_bytes = sizeof entries, .used_bytes = &used};
    struct weight of_100 = weight_of(100, 512 << 10);
    used = sizeof entries;
    ledger_open(region);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct weight weight = weight_of(sizes[i], 512 << 10);
        ledger_alloc(2, sizes[i], &weight, false);
        ledger_alloc(1, sizes[i], &weight, true);
    }
    const struct cairn_sample_size *found = entries[2].sizes;
    assert_int_equal(found[0].least_bytes, 64);
    assert_int_equal(found[0].most_bytes, 127);
    assert_int_equal(found[0].samples, 4);
    assert_true(found[0].calls > 3 * (uint64_t)of_100.extra && found[0].variance > 0);
    assert_int_equal(found[1].least_bytes, 5000);
    assert_int_equal(found[1].samples, 1);
    assert_int_equal(found[2].most_bytes, 0);
    assert_int_equal(found[2].samples, 1);
    assert_int_equal(found[3].least_bytes, UINT32_MAX);
    assert_int_equal(found[3].calls, CAIRN_SAMPLE_ONE);
    assert_true(found[3].variance == 0);
    for (size_t i = 0; i < CAIRN_SAMPLE_SIZES; i++)
        assert_int_equal(entries[1].sizes[i].samples, 0);
    assert_true(entries[1].sums.calls_variance > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
