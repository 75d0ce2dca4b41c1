// SPDX-License-Identifier: Apache-2.0
// Sizes against a count of every size in the plainest way.
#include "runtime/stack/block_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { SIZES = 4096, CELL = CELLS_SHARED };
static uint64_t counts[SIZES];

static void start(void) {
    memset(counts, 0, sizeof counts);
    recording_start(1024, 4096);
    assert_int_equal(cells_take_blocks(0, 1), CELL);
}

static void allocate(uint64_t size) {
    cells.items[CELL].calls++;
    if (!block_stats_has_usual_size(&cells.items[CELL], size))
        block_stats_count_other_size(CELL, size);
    counts[size < SIZES ? size : SIZES - 1]++;
}

// The same as the hooks do it: by the quick ways where these do.
static void allocate_quickly(uint64_t size) {
    struct cairn_cell *cell = &cells.items[CELL];
    struct cairn_sizes *sizes = block_stats_sizes(CELL);
    cell->calls++;
    if (block_stats_has_usual_size(cell, size)) return;
    if (sizes && block_stats_count_again(sizes, size)) return;
    block_stats_count_other_size(CELL, size);
}

static const struct cairn_sizes *others(void) {
    return block_stats_sizes(CELL);
}

// What the entry says of a size; the usual one is what is left.
static uint64_t count_of(uint64_t size) {
    const struct cairn_sizes *sizes = others();
    uint64_t sum = sizes ? sizes->unknown_calls : 0;
    for (unsigned i = 0; sizes && i < CAIRN_SIZES_EXACT; i++) {
        if (sizes->counts[i] && sizes->sizes[i] == size) return sizes->counts[i];
        sum += sizes->counts[i];
    }
    for (unsigned i = 0; sizes && i < CAIRN_SIZES_BUCKETS; i++) sum += sizes->buckets[i];
    return cells.items[CELL].size == size ? cells.items[CELL].calls - sum : 0;
}

static void test_one_size_needs_no_entry(void **state) {
    (void)state;
    start();
    for (int i = 0; i < 1000; i++) allocate(24);
    assert_null(others());
    assert_null(cell_rare(CELL));
    assert_int_equal(cells.items[CELL].size, 24);
}

static void test_few_calls_are_not_counted(void **state) {
    (void)state;
    start();
    for (uint64_t i = 0; i < SIZES_BUSY_CALLS - 1; i++) allocate(i);
    assert_int_equal(cells.items[CELL].size, CAIRN_SIZE_VARIES);
    allocate(7);
    assert_non_null(others());
    assert_int_equal(others()->unknown_calls, SIZES_BUSY_CALLS - 1);
    assert_int_equal(count_of(7), 1);
}

static uint64_t random_size(uint64_t *seed, uint64_t range) {
    if (random_chance(seed, 1)) return ((uint64_t)1 << 32) + random_below(seed, range);
    return random_chance(seed, 50) ? random_below(seed, 4) : random_below(seed, range);
}

// 0, which places that were never taken hold too, and sizes of more than 32 bits among them.
static void test_quick_ways_count_the_same(void **state) {
    (void)state;
    for (uint64_t range = 2; range < 2000; range = range * 3 / 2 + 1) {
        struct cairn_sizes plain;
        uint32_t usual = 0;
        for (int is_quick = 0; is_quick < 2; is_quick++) {
            uint64_t seed = range;
            start();
            for (int i = 0; i < 20000; i++) {
                uint64_t size = random_size(&seed, range);
                if (is_quick)
                    allocate_quickly(size);
                else
                    allocate(size);
            }
            if (is_quick) break;
            plain = *others();
            usual = cells.items[CELL].size;
        }
        assert_memory_equal(others(), &plain, sizeof plain);
        assert_int_equal(cells.items[CELL].size, usual);
    }
}

static void test_places_of_a_size(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 10000; round++) {
        struct cairn_sizes sizes = {0};
        unsigned plain = 0;
        uint32_t size = (uint32_t)random_below(&seed, 5) << random_below(&seed, 30);
        for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) {
            sizes.sizes[i] = (uint32_t)random_below(&seed, 5) << random_below(&seed, 30);
            if (random_chance(&seed, 20)) sizes.sizes[i] = size;
            if (sizes.sizes[i] == size) plain |= 1u << i;
        }
        assert_int_equal(block_stats_places_like(&sizes, size), plain);
    }
}

// A stack that kept to one size until it was busy is known from the start.
static void test_nine_sizes_are_exact(void **state) {
    (void)state;
    uint64_t seed = 5;
    start();
    for (int i = 0; i < SIZES_BUSY_CALLS; i++) allocate(100);
    for (int i = 0; i < 100000; i++) allocate(100 + random_below(&seed, 9));
    assert_int_equal(others()->unknown_calls, 0);
    for (uint64_t size = 100; size < 109; size++) assert_int_equal(count_of(size), counts[size]);
}

// The usual size is the most frequent one sooner or later; the counts stay exact.
static void test_another_size_becomes_usual(void **state) {
    (void)state;
    start();
    for (int i = 0; i < SIZES_BUSY_CALLS; i++) allocate(0);
    for (int i = 0; i < 1000; i++) allocate(64);
    assert_int_equal(cells.items[CELL].size, 64);
    assert_int_equal(count_of(64), 1000);
    assert_int_equal(count_of(0), SIZES_BUSY_CALLS);
}

// Sizes that come late and often find a place; everything adds up.
static void test_many_sizes(void **state) {
    (void)state;
    uint64_t seed = 9, sum = 0;
    start();
    for (int i = 0; i < 20000; i++) allocate(random_below(&seed, 3000));
    for (int i = 0; i < 20000; i++) allocate(i % 2 ? 3333 : random_below(&seed, 3000));
    const struct cairn_sizes *sizes = others();
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) sum += sizes->counts[i];
    for (unsigned i = 0; i < CAIRN_SIZES_BUCKETS; i++) sum += sizes->buckets[i];
    sum += sizes->unknown_calls + count_of(cells.items[CELL].size);
    assert_int_equal(sum, cells.items[CELL].calls);
    uint64_t found = count_of(3333);
    assert_true(found > counts[3333] / 2 && found <= counts[3333]);
}

// Eight sizes are there first, then none of them comes again: those that are frequent then have the
// places at the end, however they come.
static void test_frequent_sizes_find_places(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (unsigned period = 16; period <= 32; period *= 2) {
        start();
        for (int i = 0; i < 900; i++) allocate(100 + random_below(&seed, 9));
        for (unsigned i = 0; i < 40000; i++)
            allocate(i % period < 6 ? 1000 + i % period : 2000 + random_below(&seed, 500));
        for (uint64_t size = 1000; size < 1006; size++) {
            assert_true(count_of(size) > counts[size] / 2);
            assert_true(count_of(size) <= counts[size]);
        }
    }
}

static void test_large_sizes(void **state) {
    (void)state;
    start();
    for (int i = 0; i < 100; i++) allocate(i % 2 ? 24 : (uint64_t)5 << 30);
    const struct cairn_sizes *sizes = others();
    assert_non_null(sizes);
    assert_int_equal(sizes->buckets[33] + sizes->unknown_calls + count_of(24) +
                         count_of(cells.items[CELL].size) * (cells.items[CELL].size != 24),
                     100);
    assert_true(sizes->buckets[33] >= 50 - SIZES_BUSY_CALLS);
}

static void test_no_room(void **state) {
    (void)state;
    start();
    for (int is_rare_full = 0; is_rare_full <= 1; is_rare_full++) {
        start();
        uses.sizes.is_full = uses.reallocs.is_full = 1;
        cells.rare_region.is_full = (uint32_t)is_rare_full;
        for (uint64_t i = 0; i < 1000; i++) allocate(i);
        block_stats_count_realloc(CELL, 1, 2, REALLOC_COPIED);
        assert_int_equal(cells.items[CELL].size, CAIRN_SIZE_VARIES);
        assert_true(is_rare_full ? !cell_rare(CELL) : !cell_rare(CELL)->reallocs);
    }
}

static void test_reallocs(void **state) {
    (void)state;
    start();
    block_stats_count_realloc(CELL, 10, 20, REALLOC_COPIED);
    block_stats_count_realloc(CELL, 20, 40, REALLOC_IN_PLACE);
    block_stats_count_realloc(CELL, 40, 5, REALLOC_COPIED);
    const struct cairn_reallocs *found = (const struct cairn_reallocs *)uses.reallocs.base;
    assert_int_equal(cell_rare(CELL)->reallocs, 1);
    assert_int_equal(found->cell, CELL);
    assert_int_equal(found->calls, 3);
    assert_int_equal(found->in_place, 1);
    assert_int_equal(found->grown, 2);
    assert_int_equal(found->copied_bytes, 15);
}

static void test_ages(void **state) {
    (void)state;
    start();
    uses.ages = uses.reallocs;
    block_stats_count_age(CELL, 0, 5);
    block_stats_count_age(CELL, 1, 0);
    block_stats_count_age(CELL, UINT32_MAX - 1, INT32_MAX);
    block_stats_count_age(CELL, USE_NO_CALLS, 4);
    // not 49 days, but born 1 ms after the clock that the free looked at
    block_stats_count_age(CELL, USE_NO_CALLS, UINT32_MAX);
    block_stats_count_age(CELL, USE_NO_CALLS, (uint32_t)INT32_MAX + 1);
    struct cairn_ages *ages = (struct cairn_ages *)uses.ages.base;
    assert_int_equal(cell_rare(CELL)->ages, 1);
    assert_int_equal(ages->cell, CELL);
    assert_int_equal(ages->calls[0], 1);
    assert_int_equal(ages->calls[1], 1);
    assert_int_equal(ages->calls[CAIRN_AGE_BUCKETS - 1], 1);
    assert_int_equal(ages->ms[0], 3);
    assert_int_equal(ages->ms[3], 2);
    assert_int_equal(ages->ms[CAIRN_AGE_BUCKETS - 1], 1);
    ages->ms[3] = UINT32_MAX;
    block_stats_count_age(CELL, USE_NO_CALLS, 4);
    assert_int_equal(ages->ms[3], UINT32_MAX);
}

static const struct cairn_aligned *aligned_of(uint32_t id) {
    const struct cairn_cell_rare *rare = cell_rare(id);
    uint32_t number = rare ? rare->aligned : 0;
    return number ? (const struct cairn_aligned *)uses.aligned.base + number - 1 : NULL;
}

// Each alignment in the bucket of the power of two that it is, or is rounded up to.
static void test_alignments(void **state) {
    (void)state;
    static const struct {
        uint64_t alignment;
        unsigned bucket;
    } cases[] = {{17, 0},   {32, 0},          {33, 1},          {64, 1},          {4096, 7},
                 {4097, 8}, {1ull << 31, 26}, {1ull << 32, 27}, {1ull << 40, 27}, {1ull << 63, 27}};
    start();
    assert_null(aligned_of(CELL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t before = i ? aligned_of(CELL)->calls[cases[i].bucket] : 0;
        block_stats_count_aligned(CELL, cases[i].alignment, 3, 5);
        assert_int_equal(aligned_of(CELL)->calls[cases[i].bucket], before + 1);
        assert_int_equal(aligned_of(CELL)->slack_bytes, 3 * (i + 1));
        assert_int_equal(aligned_of(CELL)->waste_bytes, 5 * (i + 1));
    }
    block_stats_count_aligned(CELL + 1, 64, 0, 7);
    assert_int_equal(aligned_of(CELL)->cell, CELL);
    assert_int_equal(aligned_of(CELL + 1)->cell, CELL + 1);
    assert_int_equal(aligned_of(CELL + 1)->waste_bytes, 7);
}

// Without room nothing is counted, and nothing else is wrong.
static void test_no_room_for_alignments(void **state) {
    (void)state;
    start();
    uses.aligned.is_full = 1;
    block_stats_count_aligned(CELL, 64, 1, 1);
    assert_null(aligned_of(CELL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_size_needs_no_entry),
        cmocka_unit_test(test_few_calls_are_not_counted),
        cmocka_unit_test(test_nine_sizes_are_exact),
        cmocka_unit_test(test_quick_ways_count_the_same),
        cmocka_unit_test(test_places_of_a_size),
        cmocka_unit_test(test_another_size_becomes_usual),
        cmocka_unit_test(test_many_sizes),
        cmocka_unit_test(test_frequent_sizes_find_places),
        cmocka_unit_test(test_large_sizes),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_reallocs),
        cmocka_unit_test(test_ages),
        cmocka_unit_test(test_alignments),
        cmocka_unit_test(test_no_room_for_alignments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
