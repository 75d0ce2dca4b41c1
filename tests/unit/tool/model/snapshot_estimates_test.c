// SPDX-License-Identifier: Apache-2.0
// How sure values at snapshots are, against sums of the samples that were live, came or went.
#include "tool/model/snapshot_choice.h"

#include "tests/unit/tool/model/made_snapshots.h"

enum { BYTES_VARIANCE = 100, BLOCKS_VARIANCE = 2 };
static const struct making_weight weight = {1000, BYTES_VARIANCE, BLOCKS_VARIANCE};

static void start_sampled(void) {
    start();
    making.sampling = (struct cairn_sampling){.is_on = 1, .rate_bytes = 1000};
}

static struct snapshot_choice at(const char *text) {
    struct snapshot_choice choice;
    struct error error;
    if (!snapshot_choose(&snapshots, text, &choice, &error)) fail_msg("%s", error.text);
    return choice;
}

// Takes the list, which has one stack.
static void check_and_free(struct estimate *estimates, int64_t samples) {
    assert_non_null(estimates);
    assert_int_equal(estimates[0].samples, samples);
    assert_int_equal((int64_t)estimates[0].bytes_variance, samples * BYTES_VARIANCE);
    assert_int_equal((int64_t)estimates[0].blocks_variance, samples * BLOCKS_VARIANCE);
    free(estimates);
}

static void check_between(const char *first, const char *second, int64_t samples) {
    struct snapshot_choice from = at(first), to = at(second);
    check_and_free(snapshot_estimates_between(&snapshots, &from, &to), samples);
}

static void check_at(const char *text, int64_t samples, int64_t blocks) {
    struct snapshot_choice choice = at(text);
    check_and_free(snapshot_estimates_at(&snapshots, &choice), samples);
    struct live_at *held = snapshot_choice_live(&snapshots, &choice);
    assert_int_equal(held[0].blocks, blocks);
    assert_int_equal(held[0].bytes, samples * (int64_t)weight.bytes);
    free(held);
}

// The worker frees some of what the main thread allocated.
static void test_live_at_snapshots(void **state) {
    (void)state;
    start_sampled();
    uint32_t cell = stack_at(0, PROGRAM + 0x10), foreign = making_foreign(&making, 1, cell);
    making_book_samples(&making, cell, 10, 2, weight);
    making_book_samples(&making, foreign, 0, 1, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "first", 100);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "same", 150);
    making_book_samples(&making, cell, 5, 1, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "second", 200);
    making_book_samples(&making, foreign, 0, 11, weight);
    open_made();
    check_at("first", 7, 14);
    check_at("same", 7, 14);
    check_at("second", 11, 22);
    check_at("exit", 0, 0);
    close_made();
}

// What was live at both snapshots cancels out.
static void test_only_what_came_and_went_counts(void **state) {
    (void)state;
    start_sampled();
    uint32_t cell = stack_at(0, PROGRAM + 0x10), foreign = making_foreign(&making, 1, cell);
    making_book_samples(&making, cell, 50, 0, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "first", 100);
    making_book_samples(&making, cell, 2, 0, weight);
    making_book_samples(&making, foreign, 0, 3, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "second", 200);
    open_made();
    check_between("first", "second", 5);
    check_between("first", "exit", 5);
    check_between("second", "exit", 0);
    close_made();
}

// More came and went in between than was live at either snapshot: that is the bound.
static void test_churn_in_between(void **state) {
    (void)state;
    start_sampled();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    making_book_samples(&making, cell, 10, 0, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "first", 100);
    making_book_samples(&making, cell, 500, 500, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "second", 200);
    open_made();
    check_between("first", "second", 20);
    close_made();
}

// A stack that was empty at a moment has sums all the same.
static void test_empty_in_between(void **state) {
    (void)state;
    start_sampled();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    making_book_samples(&making, cell, 10, 0, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "first", 100);
    making_book_samples(&making, cell, 0, 10, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "second", 200);
    making_book_samples(&making, cell, 4, 0, weight);
    open_made();
    check_between("first", "second", 10);
    check_between("second", "exit", 4);
    check_between("first", "exit", 14);
    close_made();
}

// From a mark on what is new is told from what is gone, whatever came and went.
static void test_from_a_mark_on(void **state) {
    (void)state;
    start_sampled();
    uint32_t before = stack_at(0, PROGRAM + 0x10);
    making_book_samples(&making, before, 10, 0, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "mark", 100);
    uint32_t after = stack_at(0, PROGRAM + 0x10);
    making_book_samples(&making, after, 500, 498, weight);
    making_book_samples(&making, before, 0, 1, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "later", 200);
    making_book_samples(&making, after, 1, 0, weight);
    open_made();
    check_between("mark", "later", 3);
    check_between("mark", "exit", 4);
    check_and_free(snapshot_estimates_since(&snapshots, snapshots.list[0].generation), 3);
    close_made();
}

// Weights changed, or the sums of a snapshot are not known: what was live at both counts twice.
static void test_what_is_not_known(void **state) {
    (void)state;
    start_sampled();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    making_book_samples(&making, cell, 10, 0, weight);
    making_peak(&making, 50);
    making_book_samples(&making, cell, 0, 4, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "first", 100);
    making_book_samples(&making, cell, 1, 0, weight);
    making.sample_cells[cell].peak_extra = (uint64_t)10 * CAIRN_SAMPLE_ONE;
    making.sample_cells[cell].peak_bytes_variance = 10 * BYTES_VARIANCE;
    making.sample_cells[cell].peak_blocks_variance = 10 * BLOCKS_VARIANCE;
    open_made();
    check_between("first", "exit", 1);
    check_between("peak", "first", 16);
    close_made();
    making.sampling.thinned_count = 1;
    open_made();
    check_between("first", "exit", 13);
    close_made();
}

// A recording of an older cairn has no sums: its snapshots are not used, and nothing is made up.
static void test_without_sums(void **state) {
    (void)state;
    start_sampled();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    making_book_samples(&making, cell, 10, 0, weight);
    making_snapshot(&making, CAIRN_SNAPSHOT_ASKED, "first", 100);
    open_made();
    assert_int_equal(snapshots.count, 1);
    assert_false(snapshots.list[0].has_values);
    struct snapshot_choice choice;
    struct error error;
    assert_false(snapshot_choose(&snapshots, "first", &choice, &error));
    close_made();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_at_snapshots),
        cmocka_unit_test(test_only_what_came_and_went_counts),
        cmocka_unit_test(test_churn_in_between),
        cmocka_unit_test(test_empty_in_between),
        cmocka_unit_test(test_from_a_mark_on),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_without_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
