// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth.h"

#include "tests/unit/tool/model/made_snapshots.h"

enum { KIB = 1024, MIB = 1024 * KIB, SECOND = 1000000000, POINTS_A_SECOND = 4 };

static struct growth growth;

// One stack that holds so many KiB after each second, in a heap that holds as much, and nothing at
// the end if `is_freed`. A second without a change has no snapshot, as nothing is taken then.
static void book(const int64_t *held_kib, size_t seconds, bool is_freed) {
    start();
    uint32_t cell = stack_at(0, PROGRAM + 0x20);
    int64_t before = 0;
    making.header.totals.point_ns = SECOND / POINTS_A_SECOND;
    for (size_t i = 0; i < seconds; i++) {
        int64_t now = held_kib[i] * KIB, change = now - before;
        if (change > 0) making_book(&making, cell, 1, (uint64_t)change, 0, 0);
        if (change < 0) making_peak(&making, i * SECOND - 1);
        if (change < 0) making_book(&making, cell, 0, 0, 1, (uint64_t)-change);
        if (change) making_point(&making, (uint32_t)i * POINTS_A_SECOND, now, now, now);
        if (change > 0) making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", i * SECOND);
        before = now;
    }
    if (is_freed) making_peak(&making, seconds * SECOND - 1);
    if (is_freed) making_book(&making, cell, 0, 0, 1, (uint64_t)before);
    if (is_freed) making_point(&making, (uint32_t)seconds * POINTS_A_SECOND - 1, 0, before, 0);
    making.header.end_ns = seconds * SECOND;
    open_made();
    assert_true(growth_build(&growth, &snapshots, 0, 128, NULL));
}

static void end_book(void) {
    growth_free(&growth);
    close_made();
}

static void test_leak(void **state) {
    (void)state;
    book((const int64_t[]){1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000}, 8, false);
    assert_true(growth.is_known);
    assert_int_equal(growth.count, 1);
    assert_false(growth.list->has_stalled);
    assert_true(growth.list->fit > 0.98);
    assert_true(growth.list->bytes_per_s > 950 * KIB && growth.list->bytes_per_s < 1050 * KIB);
    assert_int_equal(growth.list->first_bytes, 1000 * KIB);
    assert_int_equal(growth.list->last_bytes, 8000 * KIB);
    assert_int_equal(growth.list->freed_bytes, 0);
    end_book();
}

static void test_freed_at_shutdown(void **state) {
    (void)state;
    book((const int64_t[]){1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000}, 8, true);
    assert_int_equal(growth.count, 1);
    assert_false(growth.list->has_stalled);
    assert_int_equal(growth.list->freed_bytes, 8000 * KIB);
    end_book();
}

// Beside a block that is there all the time, what was freed piece by piece before the last tenth:
// no snapshot tells of which stack it was.
static void test_taken_before_shutdown(void **state) {
    (void)state;
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        start();
        uint32_t cell = stack_at(0, PROGRAM + 0x20), other = stack_at(1, PROGRAM + 0x40);
        making.header.totals.point_ns = SECOND / POINTS_A_SECOND;
        making_book(&making, other, 1, 9 * MIB, 0, 0);
        for (uint32_t i = 0; i < 9; i++) {
            int64_t now = (int64_t)(i + 10) * MIB;
            making_book(&making, cell, 1, MIB, 0, 0);
            making_point(&making, i * POINTS_A_SECOND, now, now, now);
            making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", (uint64_t)i * SECOND);
        }
        making_peak(&making, 8ull * SECOND);
        making_book(&making, cell, 0, 0, 9, 9 * MIB);
        for (uint32_t i = 9; is_taken && i < 11; i++)
            making_point(&making, i * POINTS_A_SECOND, 15 * MIB, 15 * MIB, 15 * MIB);
        making_book(&making, other, 0, 0, 1, 9 * MIB);
        making_point(&making, 12 * POINTS_A_SECOND - 1, 0, 15 * MIB, 0);
        making.header.end_ns = 12ull * SECOND;
        open_made();
        assert_true(growth_build(&growth, &snapshots, 0, 128, NULL));
        assert_true(growth.is_known);
        assert_int_equal(growth.count, !is_taken);
        end_book();
    }
}

// Filled in the first seconds, and held: no growth, but when it grew is known.
static void test_flat_since(void **state) {
    (void)state;
    const int64_t held[] = {1000, 4000, 6000, 8000, 8000, 8000, 8000, 8000, 8000, 8000, 8000, 8000};
    for (int is_freed = 0; is_freed < 2; is_freed++) {
        book(held, 12, is_freed);
        assert_true(growth.is_known);
        assert_int_equal(growth.count, 1);
        assert_int_equal(growth.stalled_count, 1);
        assert_true(growth.list->has_stalled);
        assert_int_equal(growth.list->from_ns, 0);
        assert_int_equal(growth.list->until_ns, 3ull * SECOND);
        end_book();
    }
}

// A program that is kept waiting for half of the time: over what it allocated meanwhile the curve
// is a line. `is_waiting` false: it goes on to allocate, and the stack rises late.
static void test_kept_waiting(void **state) {
    (void)state;
    for (int is_waiting = 0; is_waiting < 2; is_waiting++) {
        const uint64_t all_seconds = 21, waits_from = 1, waits_to = 11;
        uint64_t allocated = 0;
        int64_t now = 0;
        start();
        uint32_t cell = stack_at(0, PROGRAM + 0x20);
        making.header.totals.point_ns = SECOND;
        for (uint64_t i = 0; i < all_seconds; i++) {
            const bool is_rising = i <= waits_from || i >= waits_to;
            if (is_rising) making_book(&making, cell, 1, MIB, 0, 0);
            now += is_rising ? MIB : 0;
            allocated += is_rising || !is_waiting ? 20 * MIB : 0;
            making_point(&making, (uint32_t)i, now, now, now);
            making.points[i].allocated_bytes = allocated;
            if (is_rising) making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", i * SECOND);
        }
        making.header.end_ns = all_seconds * SECOND;
        open_made();
        assert_true(growth_build(&growth, &snapshots, 0, 128, NULL));
        assert_int_equal(growth.count, 1);
        assert_int_equal(growth.list->fit > 0.95, is_waiting);
        end_book();
    }
}

// A block that was freed long before the end neither grows nor is there, though no snapshot tells.
static void test_fall(void **state) {
    (void)state;
    const int64_t held[] = {1000, 4000, 6000, 8000, 10, 10, 10, 10, 10, 10, 10, 10};
    book(held, 12, false);
    assert_true(growth.is_known);
    assert_int_equal(growth.count, 0);
    end_book();
}

// Tells noise, whose last value is its highest once in a while, from a leak that goes up and down
// by as much.
static void test_chance(void **state) {
    (void)state;
    book((const int64_t[]){0, 1100, 300, 1400, 900, 200, 1500, 700, 1200, 600, 900, 1900}, 12,
         false);
    assert_true(growth.is_known);
    assert_int_equal(growth.count, 0);
    end_book();
    book((const int64_t[]){0, 1100, 900, 2400, 1900, 1700, 3500, 3700, 3200, 4600, 4900, 5700}, 12,
         false);
    assert_int_equal(growth.count, 1);
    assert_false(growth.list->has_stalled);
    end_book();
}

static void test_not_known(void **state) {
    (void)state;
    book((const int64_t[]){1000, 2000, 3000}, 3, false);  // few moments
    assert_false(growth.is_known);
    assert_int_equal(growth.count, 0);
    end_book();
    // the second half alone
    book((const int64_t[]){0, 0, 0, 0, 0, 0, 1000, 2000, 3000, 4000, 5000}, 11, false);
    assert_false(growth.is_known);
    end_book();
}

static void test_curve(void **state) {
    (void)state;
    book((const int64_t[]){1000, 4000, 6000, 8000, 10, 10, 10, 9000, 9000, 9000, 9000, 9000}, 12,
         false);
    growth.list->stack = 0;
    int64_t *curve = growth_curves(&growth, &snapshots, 1);
    assert_non_null(curve);
    assert_int_equal(curve[0], 1000 * KIB);
    assert_int_equal(curve[GROWTH_CELLS / 12 * 3 + 4], 8000 * KIB);
    assert_true(curve[GROWTH_CELLS / 2] < 200 * KIB);  // capped by what the whole heap held
    assert_int_equal(curve[GROWTH_CELLS - 1], 9000 * KIB);
    free(curve);
    end_book();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leak),        cmocka_unit_test(test_freed_at_shutdown),
        cmocka_unit_test(test_flat_since),  cmocka_unit_test(test_fall),
        cmocka_unit_test(test_chance),      cmocka_unit_test(test_not_known),
        cmocka_unit_test(test_curve),       cmocka_unit_test(test_taken_before_shutdown),
        cmocka_unit_test(test_kept_waiting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
