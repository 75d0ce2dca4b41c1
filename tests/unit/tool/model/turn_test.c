// SPDX-License-Identifier: Apache-2.0
// Entries of every size and count are turned as packed.h says, and back: compared with a twin that
// moves one byte after the other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/model/turn.h"

enum { ENTRY_MOST = 72, COUNT_MOST = 200 };

static void fill(uint8_t *bytes, size_t size) {
    uint32_t state = (uint32_t)size + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
}

static void check(size_t count, size_t entry_bytes) {
    size_t size = count * entry_bytes;
    uint8_t *entries = malloc(size + 1), *columns = malloc(size + 1), *back = malloc(size + 1);
    assert_true(entries && columns && back);
    fill(entries, size);
    turn_to_columns(entries, count, entry_bytes, columns);
    for (size_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < entry_bytes; byte++)
            assert_int_equal(columns[byte * count + i], entries[i * entry_bytes + byte]);
    turn_to_entries(columns, count, entry_bytes, back);
    assert_memory_equal(back, entries, size);
    free(entries);
    free(columns);
    free(back);
}

static void test_every_size_of_entry(void **state) {
    static const size_t counts[] = {0, 1, 7, 63, 64, 65, 128, COUNT_MOST};
    (void)state;
    for (size_t entry_bytes = 1; entry_bytes <= ENTRY_MOST; entry_bytes++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check(counts[i], entry_bytes);
}

static void test_every_count(void **state) {
    (void)state;
    for (size_t count = 0; count <= COUNT_MOST; count++) check(count, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size_of_entry),
        cmocka_unit_test(test_every_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
