// SPDX-License-Identifier: Apache-2.0
// Adds and removes at random, beside a table of pages.
#include "runtime/sys/holdings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { PAGE = 4096, PAGES = 4096, ROUNDS = 6000, MOST_PAGES = 40 };

static bool is_held[PAGES];
static const uintptr_t base = (uintptr_t)1 << 40;

static uintptr_t address_of(size_t page) {
    return base + page * PAGE;
}

static void add(size_t page, size_t count) {
    while (!holdings_add(address_of(page), count * PAGE))
        assert_true(holdings_extend(calloc(1, HOLDINGS_PIECE_BYTES)));
    memset(is_held + page, true, count);
}

static void drop(size_t page, size_t count) {
    holdings_remove(address_of(page), count * PAGE);
    memset(is_held + page, false, count);
}

static size_t free_pages_at(size_t page) {
    size_t count = 0;
    while (page + count < PAGES && count < MOST_PAGES && !is_held[page + count]) count++;
    return count;
}

// Walks over all that is held, as who leaves it out does.
static void compare(void) {
    uintptr_t start, end, from = 0;
    size_t page = 0, held_count = 0;
    while (holdings_next(from, &start, &end)) {
        for (; address_of(page) < start; page++) assert_false(is_held[page]);
        for (; address_of(page) < end; page++, held_count++) assert_true(is_held[page]);
        from = end;
    }
    for (; page < PAGES; page++) assert_false(is_held[page]);
    assert_int_equal(holdings_bytes(), held_count * PAGE);
}

static void test_as_a_table_of_pages(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < ROUNDS; i++) {
        size_t page = random_next(&seed) % (PAGES - MOST_PAGES);
        size_t count = random_next(&seed) % MOST_PAGES + 1, room = free_pages_at(page);
        if (random_next(&seed) % 2)
            drop(page, count);
        else if (room)
            add(page, count < room ? count : room);
        if (i % 100 == 0) compare();
    }
    drop(0, PAGES);
    compare();
}

// More than the empty list has places for; what comes and goes needs none.
static void test_few_entries_have_many(void **state) {
    (void)state;
    const size_t many = 8192, middle = many / 2;
    for (size_t i = 0; i < many; i++) {
        size_t page = i % 2 ? middle + i / 2 : middle - 1 - i / 2;
        assert_true(holdings_add(address_of(page), PAGE));
        assert_true(holdings_add(address_of(2 * many), PAGE));
        holdings_remove(address_of(2 * many), PAGE);
    }
    assert_int_equal(holdings_bytes(), many * PAGE);
    holdings_remove(base, many * PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_entries_have_many),
        cmocka_unit_test(test_as_a_table_of_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
