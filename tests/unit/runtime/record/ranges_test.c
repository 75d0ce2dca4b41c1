// SPDX-License-Identifier: Apache-2.0
// The list of ranges against an array of pages that knows whose each one is.
#include "runtime/record/ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { PAGE = 4096, PAGES = 3000, MAPPERS = 7, STEPS = 60000, LONGEST = 200, CHECK_EVERY = 500 };
static const uint64_t base = 0x7f0000000000;

static struct model {
    uint8_t mapper[PAGES];   // + 1; 0: not mapped
    uint32_t stamp[PAGES];   // of the range that the page belongs to
    int64_t bytes[MAPPERS];  // as ranges_remove and the test itself counted
    int64_t entries[MAPPERS];
} model;

static void count_lost(uint32_t mapper, uint64_t bytes, enum ranges_loss loss) {
    assert_true(mapper < MAPPERS && bytes);
    model.bytes[mapper] -= (int64_t)bytes;
    if (loss == RANGES_WHOLE) model.entries[mapper]--;
    if (loss == RANGES_SPLIT) model.entries[mapper]++;
}

static void remove_both(struct ranges *ranges, uint32_t from, uint32_t to, uint32_t stamp) {
    assert_true(ranges_prepare(ranges));
    ranges_remove(ranges, base + (uint64_t)from * PAGE, base + (uint64_t)to * PAGE, stamp,
                  count_lost);
    for (uint32_t page = from; page < to; page++)
        if ((int32_t)(model.stamp[page] - stamp) <= 0) model.mapper[page] = 0;
}

static void add_both(struct ranges *ranges, uint32_t from, uint32_t to, uint32_t mapper,
                     uint32_t stamp) {
    const struct cairn_mapping_range range = {base + (uint64_t)from * PAGE,
                                              base + (uint64_t)to * PAGE, mapper, stamp};
    ranges_add(ranges, &range);
    model.bytes[mapper] += (int64_t)(range.end - range.start);
    model.entries[mapper]++;
    for (uint32_t page = from; page < to; page++) {
        model.mapper[page] = (uint8_t)(mapper + 1);
        model.stamp[page] = stamp;
    }
}

static void check_all(const struct ranges *ranges) {
    const struct cairn_mapping_range *list =
        (const struct cairn_mapping_range *)(uintptr_t)ranges->table.list;
    int64_t bytes[MAPPERS] = {0}, entries[MAPPERS] = {0};
    for (uint32_t i = 0; i < ranges->table.count; i++) {
        assert_true(list[i].start < list[i].end);
        if (i) assert_true(list[i].end <= list[i - 1].start);
        bytes[list[i].mapper] += (int64_t)(list[i].end - list[i].start);
        entries[list[i].mapper]++;
    }
    assert_memory_equal(bytes, model.bytes, sizeof bytes);
    assert_memory_equal(entries, model.entries, sizeof entries);
    for (uint32_t page = 0; page < PAGES; page++) {
        const struct cairn_mapping_range *found =
            ranges_find(ranges, base + (uint64_t)page * PAGE + PAGE / 2);
        assert_int_equal(found ? found->mapper + 1 : 0, model.mapper[page]);
    }
    assert_int_equal(ranges->table.change % 2, 0);
}

// Random ranges are mapped over each other and taken away in part; some removals are late, so that
// what was mapped since they began stays.
static void random_ranges(void **state) {
    (void)state;
    static struct ranges ranges;
    uint64_t seed = 1;
    uint32_t stamp = UINT32_MAX - STEPS / 2;  // it wraps on the way
    memset(&model, 0, sizeof model);
    for (uint32_t page = 0; page < PAGES; page++) model.stamp[page] = stamp;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t from = (uint32_t)(random_next(&seed) % (PAGES - LONGEST));
        uint32_t to = from + 1 + (uint32_t)(random_next(&seed) % LONGEST);
        uint32_t choice = (uint32_t)(random_next(&seed) % 4);
        if (choice < 2) {
            stamp++;
            remove_both(&ranges, from, to, stamp);
            add_both(&ranges, from, to, (uint32_t)(random_next(&seed) % MAPPERS), stamp);
        } else {
            remove_both(&ranges, from, to, choice == 2 ? stamp : stamp - 50);
        }
        if (step % CHECK_EVERY == 0) check_all(&ranges);
    }
    check_all(&ranges);
}

static void keep(uint32_t mapper, uint64_t bytes, enum ranges_loss loss) {
    (void)mapper, (void)bytes, (void)loss;
}

// More than the first list has room for, the lowest addresses last and first.
static void many(void **state) {
    enum { MANY = 5000 };
    (void)state;
    static struct ranges down, up;
    for (uint64_t i = 0; i < MANY; i++) {
        struct cairn_mapping_range range = {base + 2 * i * PAGE, base + (2 * i + 1) * PAGE, 0, 0};
        assert_true(ranges_prepare(&up));
        ranges_add(&up, &range);
        range.start = base + 2 * (MANY - i) * PAGE;
        range.end = range.start + PAGE;
        assert_true(ranges_prepare(&down));
        ranges_add(&down, &range);
    }
    assert_int_equal(up.table.count, MANY);
    assert_int_equal(down.table.count, MANY);
    assert_non_null(ranges_find(&up, base));
    assert_null(ranges_find(&up, base + PAGE));
    assert_true(ranges_prepare(&up));
    ranges_remove(&up, base, base + 4 * (uint64_t)MANY * PAGE, 0, keep);
    assert_int_equal(up.table.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_ranges), cmocka_unit_test(many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
