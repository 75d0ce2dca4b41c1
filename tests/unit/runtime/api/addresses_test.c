// SPDX-License-Identifier: Apache-2.0
// A table as a fork may copy it while another thread changes it is put in order.
#include "runtime/api/addresses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct entry {
    uint64_t key, value;
};

enum { COUNT = 150, LOST = 7 };

static struct entry *at(const struct addresses *table, uint64_t slot) {
    return (struct entry *)(void *)table->entries + slot;
}

static struct addresses filled(void) {
    struct addresses table;
    assert_true(addresses_open(&table, sizeof(struct entry)));
    for (uintptr_t i = 1; i <= COUNT; i++) {
        struct entry *entry = addresses_add(&table, addresses_key(i));
        assert_non_null(entry);
        entry->value = i;
    }
    return table;
}

static void expect_all_but(const struct addresses *table, uintptr_t lost) {
    uint64_t count = 0;
    for (uintptr_t i = 1; i <= COUNT; i++) {
        const struct entry *entry = addresses_find(table, addresses_key(i));
        assert_int_equal(entry != NULL, i != lost);
        if (entry) assert_int_equal(entry->value, i);
    }
    for (const struct entry *entry = NULL; (entry = addresses_next(table, entry));) count++;
    assert_int_equal(count, COUNT - (lost != 0));
    assert_int_equal(table->used, count);
}

// Its number of entries was copied before, or after, they were.
static void test_number(void **state) {
    (void)state;
    struct addresses table = filled();
    table.used = 3;
    addresses_renew(&table);
    expect_all_but(&table, 0);
    table.used = 2 * COUNT;
    addresses_renew(&table);
    expect_all_but(&table, 0);
    addresses_close(&table);
}

// A later entry was moved up, and stands in its old place as well.
static void test_twice(void **state) {
    (void)state;
    struct addresses table = filled();
    uint64_t free_slot = 0;
    while (at(&table, free_slot)->key) free_slot++;
    *at(&table, free_slot) = *(struct entry *)addresses_find(&table, addresses_key(1));
    addresses_renew(&table);
    expect_all_but(&table, 0);
    addresses_close(&table);
}

// A gap before entries that have not moved up yet: no search finds them.
static void test_gap(void **state) {
    (void)state;
    struct addresses table = filled();
    uintptr_t hidden = 0;
    uint64_t lost = 0;
    for (uintptr_t i = 1; i <= COUNT && !hidden; i++) {
        struct entry *entry = addresses_find(&table, addresses_key(i)), was = *entry;
        entry->key = 0;
        for (uintptr_t other = 1; other <= COUNT && !hidden; other++)
            if (other != i && !addresses_find(&table, addresses_key(other))) hidden = other;
        lost = was.value;
        if (!hidden) *entry = was;
    }
    assert_int_not_equal(hidden, 0);
    addresses_renew(&table);
    expect_all_but(&table, lost);
    addresses_close(&table);
}

// Every slot is used.
static void test_full(void **state) {
    (void)state;
    struct addresses table = filled();
    uint64_t slots = table.slots;
    for (uint64_t i = 0; i < slots; i++)
        *at(&table, i) = (struct entry){addresses_key(i + 1), i + 1};
    addresses_renew(&table);
    assert_int_equal(table.used, slots);
    assert_true(table.slots > slots);
    for (uintptr_t i = 1; i <= slots; i++)
        assert_non_null(addresses_find(&table, addresses_key(i)));
    addresses_close(&table);
}

static void test_none(void **state) {
    (void)state;
    struct addresses table = {0};
    addresses_renew(&table);
    assert_null(addresses_find(&table, addresses_key(1)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number), cmocka_unit_test(test_twice), cmocka_unit_test(test_gap),
        cmocka_unit_test(test_full),   cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
