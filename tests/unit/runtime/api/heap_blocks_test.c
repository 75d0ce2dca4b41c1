// SPDX-License-Identifier: Apache-2.0
// Sizes and ages of blocks beside plain counts, with blocks that are taken out again.
#include "runtime/api/heap_blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { NUMBER = 7, SIZES = 40, STEPS = 20000, ROUNDS = 20, BITS = 33 };

static uint64_t seed = 1;

// The last one is beyond 32 bits; the first ones come often.
static uint64_t size_at(uint32_t index) {
    const uint64_t step = 24, large = (uint64_t)5 << 30;
    return index == SIZES - 1 ? large : (index + 1) * step;
}

static uint32_t pick(void) {
    const uint32_t often = 4, share = 3;
    return (uint32_t)(random_next(&seed) % (random_next(&seed) % share ? often : SIZES));
}

static unsigned bits_of(uint64_t size) {
    return size ? 64 - (unsigned)__builtin_clzll(size) : 0;
}

static void add(struct cairn_heap_stack *entry, uint64_t size) {
    entry->calls++;
    heap_blocks_add(entry, NUMBER, size);
}

static const struct cairn_sizes *sizes_of(const struct cairn_heap_stack *entry) {
    return (const struct cairn_sizes *)uses.sizes.base + (entry->sizes - 1);
}

// What an entry says of a size, and whether that is all.
static uint64_t counted(const struct cairn_heap_stack *entry, uint64_t size, bool *is_exact) {
    const struct cairn_sizes *sizes = sizes_of(entry);
    uint64_t others = 0;
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) others += sizes->counts[i];
    for (unsigned i = 0; i < CAIRN_SIZES_BUCKETS; i++) others += sizes->buckets[i];
    *is_exact = true;
    if (size == entry->size) return entry->calls - others;
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) {
        if (!sizes->counts[i] || sizes->sizes[i] != size) continue;
        *is_exact = !sizes->errors[i];
        return sizes->counts[i];
    }
    *is_exact = false;
    return 0;
}

static void check_sizes(const struct cairn_heap_stack *entry, const uint64_t *model) {
    const struct cairn_sizes *sizes = sizes_of(entry);
    uint64_t by_bits[64] = {0}, wanted[64] = {0}, listed = 0;
    assert_int_equal(sizes->cell, 0);
    assert_int_equal(sizes->heap_stack, NUMBER);
    for (unsigned i = 0; i < CAIRN_SIZES_BUCKETS; i++) by_bits[i] = sizes->buckets[i];
    for (uint32_t i = 0; i < SIZES; i++) {
        bool is_exact;
        uint64_t count = counted(entry, size_at(i), &is_exact);
        if (is_exact)
            assert_int_equal(count, model[i]);
        else
            assert_true(count <= model[i]);
        by_bits[bits_of(size_at(i))] += count;
        wanted[bits_of(size_at(i))] += model[i];
        listed += count;
    }
    for (unsigned i = 0; i < 64; i++) assert_int_equal(by_bits[i], wanted[i]);
    // two thirds have one of four sizes
    assert_true(listed * 2 >= entry->calls);
}

static void test_sizes(void **state) {
    (void)state;
    recording_start(CELLS_SHARED, 64);
    for (int round = 0; round < ROUNDS; round++) {
        struct cairn_heap_stack entry = {.cell = 1};
        uint64_t model[SIZES] = {0};
        uint32_t there[STEPS], count = 0;
        for (int i = 0; i < STEPS; i++) {
            bool is_dropped = count && random_next(&seed) % 16 == 0;
            uint32_t at = is_dropped ? (uint32_t)(random_next(&seed) % count) : pick();
            if (is_dropped) {
                entry.calls--;
                heap_blocks_drop(&entry, size_at(there[at]));
                model[there[at]]--;
                there[at] = there[--count];
            } else {
                add(&entry, size_at(at));
                model[at]++;
                there[count++] = at;
            }
        }
        check_sizes(&entry, model);
    }
}

static void test_one_size(void **state) {
    (void)state;
    struct cairn_heap_stack entry = {.cell = 1};
    recording_start(CELLS_SHARED, 64);
    for (int i = 0; i < STEPS; i++) add(&entry, 100);
    assert_int_equal(entry.sizes, 0);
    assert_int_equal(entry.size, 100);
}

static void test_no_room(void **state) {
    (void)state;
    struct cairn_heap_stack entry = {.cell = 1};
    recording_start(CELLS_SHARED, 64);
    while (region_take(&uses.sizes, sizeof(struct cairn_sizes))) continue;
    add(&entry, 100);
    add(&entry, 200);
    assert_int_equal(entry.sizes, CAIRN_HEAP_NO_SIZES);
    add(&entry, 300);
    heap_blocks_drop(&entry, 200);
    assert_int_equal(entry.sizes, CAIRN_HEAP_NO_SIZES);
}

static void test_ages(void **state) {
    (void)state;
    struct cairn_heap_stack entry = {.cell = 1};
    uint64_t calls[BITS] = {0}, ms[BITS] = {0};
    recording_start(CELLS_SHARED, 64);
    uses.ages = recording_region(13, 64 * sizeof(struct cairn_ages));
    for (int i = 0; i < STEPS; i++) {
        uint32_t own_calls = (uint32_t)random_next(&seed) >> random_next(&seed) % 32;
        uint32_t own_ms = (uint32_t)random_next(&seed) >> (1 + random_next(&seed) % 31);
        heap_blocks_count_age(&entry, NUMBER, own_calls, own_ms);
        if (random_next(&seed) % 8 == 0) {
            heap_blocks_drop_age(&entry, own_calls, own_ms);
            continue;
        }
        unsigned most = CAIRN_AGE_BUCKETS - 1, bits = bits_of(own_calls);
        calls[bits < most ? bits : most]++;
        ms[bits_of(own_ms)]++;
    }
    const struct cairn_ages *ages = (const struct cairn_ages *)uses.ages.base + (entry.ages - 1);
    assert_int_equal(ages->heap_stack, NUMBER);
    for (unsigned i = 0; i < CAIRN_AGE_BUCKETS; i++) assert_int_equal(ages->calls[i], calls[i]);
    for (unsigned i = 0; i < CAIRN_AGE_BUCKETS; i++) assert_int_equal(ages->ms[i], ms[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_one_size),
                                       cmocka_unit_test(test_no_room), cmocka_unit_test(test_ages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
