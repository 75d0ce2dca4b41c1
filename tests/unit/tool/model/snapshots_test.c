// SPDX-License-Identifier: Apache-2.0
#include "tool/model/snapshots.h"

#include <string.h>

#include "tests/unit/tool/model/made_snapshots.h"

static uint32_t number_of(uint32_t cell) {
    return profile.stack_of_cell[cell] - 1;
}

static void check_held(size_t snapshot, uint32_t cell, int64_t held_bytes, int64_t blocks) {
    struct live_at *held = snapshots_live(&snapshots, snapshot);
    assert_non_null(held);
    assert_int_equal(held[number_of(cell)].bytes, held_bytes);
    assert_int_equal(held[number_of(cell)].blocks, blocks);
    free(held);
}

static void test_recording_without_snapshots(void **state) {
    (void)state;
    making_sample(&making);
    open_made();
    assert_int_equal(snapshots.count, 0);
    assert_int_equal(snapshots_last_generation(&snapshots), 0);
    struct live_at *since = snapshots_since(&snapshots, 1);
    for (size_t i = 0; i < profile.stack_count; i++) assert_int_equal(since[i].bytes, 0);
    free(since);
    close_made();
}

// One cell changes after each snapshot, one never again, one begins late; a peak comes in between.
static void test_values_at_snapshots(void **state) {
    (void)state;
    start();
    uint32_t busy = stack_at(0, PROGRAM + 0x10), still = stack_at(0, PROGRAM + 0x20);
    making_book(&making, busy, 1, 100, 0, 0);
    making_book(&making, still, 2, 60, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_CHURN, "", 100);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "second", 200);
    making_book(&making, busy, 1, 50, 0, 0);
    making_peak(&making, 250);
    making_book(&making, busy, 0, 0, 2, 150);
    uint32_t late = stack_at(0, PROGRAM + 0x30);
    making_book(&making, late, 1, 7, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_HIGH, "", 300);
    making_book(&making, busy, 3, 33, 0, 0);
    open_made();
    assert_int_equal(snapshots.count, 3);
    assert_int_equal(snapshots.list[0].reason, CAIRN_SNAPSHOT_CHURN);
    assert_string_equal(snapshots.list[1].label, "second");
    assert_int_equal(snapshots.list[2].live_bytes, 67);
    for (size_t i = 0; i < 2; i++) {
        check_held(i, busy, 100, 1);
        check_held(i, still, 60, 2);
        check_held(i, late, 0, 0);
    }
    check_held(2, busy, 0, 0);
    check_held(2, still, 60, 2);
    check_held(2, late, 7, 1);
    close_made();
}

// What the coarse clock said of a peak between snapshots at 200 and 300, and what is said of it.
static void test_peak_between_snapshots(void **state) {
    (void)state;
    static const uint64_t said[] = {120, 250, 500, (uint64_t)-20};
    static const uint64_t wanted[] = {200, 250, 300, 200};
    for (size_t i = 0; i < 4; i++) {
        start();
        uint32_t cell = stack_at(0, PROGRAM + 0x10);
        making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", 200);
        making_book(&making, cell, 1, 100, 0, 0);
        making_peak(&making, said[i]);
        making_book(&making, cell, 0, 0, 1, 100);
        making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", 300);
        open_made();
        assert_int_equal(profile.peak.at_ns, wanted[i]);
        close_made();
    }
}

// The worker frees a block of the main thread: the sum of both threads' cells counts.
static void test_foreign_frees_at_snapshots(void **state) {
    (void)state;
    start();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    making_book(&making, cell, 4, 400, 0, 0);
    uint32_t foreign = making_foreign(&making, 1, cell);
    making_book(&making, foreign, 0, 0, 1, 100);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", 1);
    making_book(&making, foreign, 0, 0, 2, 200);
    open_made();
    check_held(0, cell, 300, 3);
    close_made();
}

// What was allocated since a mark and still lives, not a net change.
static void test_generations(void **state) {
    (void)state;
    start();
    uint32_t before = stack_at(0, PROGRAM + 0x10);
    making_book(&making, before, 5, 500, 0, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "one", 1);
    uint32_t after = stack_at(0, PROGRAM + 0x10);
    making_book(&making, before, 0, 0, 3, 300);
    making_book(&making, after, 2, 200, 1, 100);
    uint32_t foreign = making_foreign(&making, 1, before);
    making_book(&making, foreign, 0, 0, 1, 100);
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "two", 2);
    uint32_t last = stack_at(0, PROGRAM + 0x10);
    making_book(&making, last, 1, 30, 0, 0);
    open_made();
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(snapshots.list[0].generation, 1);
    assert_int_equal(snapshots.list[1].generation, 2);
    struct live_at *since = snapshots_since(&snapshots, snapshots.list[0].generation);
    assert_int_equal(since[0].bytes, 130);
    assert_int_equal(since[0].blocks, 2);
    free(since);
    struct live_at survivors[3];
    assert_int_equal(snapshots_last_generation(&snapshots), 2);
    snapshots_survivors(&snapshots, 0, survivors);
    assert_int_equal(survivors[0].bytes, 100);
    assert_int_equal(survivors[1].bytes, 100);
    assert_int_equal(survivors[2].bytes, 30);
    close_made();
}

static void test_damage(void **state) {
    (void)state;
    start();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    making_book(&making, cell, 1, 100, 0, 0);
    making_snapshot(&making, 99, "no such reason", 1);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "", UINT64_MAX);
    making.snapshots[1].is_inherited = 1;
    memset(making.snapshots[1].label, 'x', CAIRN_LABEL_BYTES);
    making.values[making.value_count++] = (struct cairn_value){.cell = 12345678, .to_epoch = 9};
    making.header.totals.generation = UINT32_MAX;
    open_made();
    assert_int_equal(snapshots.count, 1);
    assert_int_equal(snapshots.value_count, 0);
    assert_int_equal(strlen(snapshots.list[0].label), CAIRN_LABEL_BYTES - 1);
    assert_int_equal(snapshots.list[0].at_ns, 0);
    check_held(0, cell, 0, 0);
    assert_true(snapshots_last_generation(&snapshots) <= CAIRN_SNAPSHOT_LIMIT);
    close_made();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recording_without_snapshots),
        cmocka_unit_test(test_values_at_snapshots),
        cmocka_unit_test(test_peak_between_snapshots),
        cmocka_unit_test(test_foreign_frees_at_snapshots),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
