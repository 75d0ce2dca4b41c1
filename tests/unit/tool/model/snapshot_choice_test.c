// SPDX-License-Identifier: Apache-2.0
// Snapshots as a user names them, and stacks that grow from one to the next.
#include "tool/model/snapshot_choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/model/growth.h"

enum { PROGRAM = 0x400000, SECOND = 1000000000, KIB = 1024 };
static struct making making;
static struct recording recording;
static struct profile profile;
static struct snapshots snapshots;
static uint8_t *bytes;
static uint32_t leak, cache, once, sinking, late;

// A leak of 1 KiB/s over 10 s, a cache that is full after 2 s, a block of the start, one that goes
// down, and one that leaks from the sixth second on; marks at 1 s ("warm") and 5 s ("late"),
// snapshots at the other seconds.
static int make(void **state) {
    (void)state;
    static const uint64_t addresses[] = {PROGRAM + 0x10, PROGRAM + 0x20, PROGRAM + 0x30,
                                         PROGRAM + 0x40, PROGRAM + 0x50};
    size_t size;
    setenv("TZ", "UTC", 1);
    making_start(&making);
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&making, 4242, "example");
    leak = making_stack(&making, 0, &addresses[0], 1);
    cache = making_stack(&making, 0, &addresses[1], 1);
    once = making_stack(&making, 0, &addresses[2], 1);
    sinking = making_stack(&making, 0, &addresses[3], 1);
    late = making_stack(&making, 0, &addresses[4], 1);
    making_book(&making, once, 1, 50000, 0, 0);
    making_book(&making, sinking, 10, 10 * KIB, 0, 0);
    for (uint64_t second = 1; second <= 9; second++) {
        bool is_mark = second == 1 || second == 5;
        making_book(&making, leak, 1, KIB, 0, 0);
        if (second <= 2) making_book(&making, cache, 1, 20000, 0, 0);
        if (second >= 6) making_book(&making, late, 1, KIB, 0, 0);
        making_book(&making, sinking, 0, 0, 1, KIB);
        making_snapshot(&making, is_mark ? CAIRN_SNAPSHOT_MARK : CAIRN_SNAPSHOT_ASKED,
                        second == 1   ? "warm"
                        : second == 5 ? "late"
                        : second == 7 ? "seven"
                                      : "",
                        second * SECOND);
        if (second == 5) leak = making_stack(&making, 0, &addresses[0], 1);
    }
    making.header.end_ns = (uint64_t)10 * SECOND;
    making.header.start_unix_ns = UINT64_C(1700000000) * SECOND;  // 2023-11-14 22:13:20
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    assert_true(snapshots_build(&snapshots, &profile, NULL));
    return 0;
}

static int drop(void **state) {
    (void)state;
    snapshots_free(&snapshots);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    return 0;
}

static void check_time(const char *text, uint64_t at_ns) {
    struct snapshot_choice choice;
    struct error error;
    if (!snapshot_choose(&snapshots, text, &choice, &error)) fail_msg("%s: %s", text, error.text);
    assert_int_equal(choice.at_ns, at_ns);
    struct live_at *held = snapshot_choice_live(&snapshots, &choice);
    assert_non_null(held);
    free(held);
}

static void test_words(void **state) {
    (void)state;
    check_time("warm", SECOND);
    check_time("seven", (uint64_t)7 * SECOND);
    check_time("exit", (uint64_t)10 * SECOND);
    check_time("3s", (uint64_t)3 * SECOND);
    check_time("3.4s", (uint64_t)3 * SECOND);
    check_time("3600 ms", (uint64_t)4 * SECOND);
    check_time("1h", (uint64_t)10 * SECOND);
    check_time("-2s", (uint64_t)8 * SECOND);
    check_time("22:13:24", (uint64_t)4 * SECOND);
    check_time("22:13", SECOND);  // the start's minute
    check_time("22:14", (uint64_t)10 * SECOND);
    check_time("2023-11-14 22:13:26", (uint64_t)6 * SECOND);
    check_time("2023-11-14T22:13:26", (uint64_t)6 * SECOND);
    static const char *const wrong[] = {"", "soon", "22:1", "25:00", "-", "12:00x", "2023-11-14"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct snapshot_choice choice;
        struct error error;
        assert_false(snapshot_choose(&snapshots, wrong[i], &choice, &error));
        assert_non_null(strstr(error.text, "warm, late, seven"));
    }
}

static void test_marks(void **state) {
    (void)state;
    struct snapshot_choice choice;
    struct error error;
    assert_true(snapshot_choose_mark(&snapshots, "late", &choice, &error));
    assert_int_equal(choice.at_ns, (uint64_t)5 * SECOND);
    assert_true(snapshot_choose_mark(&snapshots, "4s", &choice, &error));
    assert_int_equal(choice.at_ns, SECOND);
    assert_false(snapshot_choose_mark(&snapshots, "seven", &choice, &error));
    assert_non_null(strstr(error.text, "snapshot"));
    assert_false(snapshot_choose_mark(&snapshots, "500ms", &choice, &error));
    assert_non_null(strstr(error.text, "marks: warm, late"));
}

static void test_held(void **state) {
    (void)state;
    struct snapshot_choice choice;
    assert_true(snapshot_choose(&snapshots, "3s", &choice, NULL));
    struct live_at *held = snapshot_choice_live(&snapshots, &choice);
    assert_int_equal(held[profile.stack_of_cell[leak] - 1].bytes, 3 * KIB);
    assert_int_equal(held[profile.stack_of_cell[sinking] - 1].blocks, 7);
    free(held);
}

static double place_of(const struct growth *growth, size_t index, bool is_by_work) {
    const struct growth_point *first = growth->points, *point = &growth->points[index];
    return is_by_work ? (double)(point->allocated_bytes - first->allocated_bytes)
                      : (double)(point->choice.at_ns - first->choice.at_ns) / SECOND;
}

// How well a line fits, by each value of each point, those that are 0 among them; a point weighs
// half the way from the one before it to the one after it.
static double fit_of(const struct growth *growth, const int64_t *values, bool is_by_work) {
    double n = 0, x = 0, xx = 0, y = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < growth->point_count; i++) {
        size_t after = i + 1 < growth->point_count ? i + 1 : i;
        double at = place_of(growth, i, is_by_work), value = (double)values[i];
        double weight =
            (place_of(growth, after, is_by_work) - place_of(growth, i ? i - 1 : 0, is_by_work)) / 2;
        n += weight;
        x += weight * at;
        xx += weight * at * at;
        y += weight * value;
        yy += weight * value * value;
        xy += weight * at * value;
    }
    double common = n * xy - x * y;
    return common * common / ((n * xx - x * x) * (n * yy - y * y));
}

static void test_growth(void **state) {
    (void)state;
    struct growth growth;
    assert_true(growth_build(&growth, &snapshots, 0, 256, NULL));
    assert_int_equal(growth.point_count, 10);
    assert_int_equal(growth.count, 3);  // neither the block of the start nor what sinks
    const struct growth_stack *first = &growth.list[0], *second = &growth.list[1],
                              *third = &growth.list[2];
    assert_int_equal(profile.stacks[first->stack].number, profile.stack_of_cell[leak] - 1);
    assert_int_equal(profile.stacks[second->stack].number, profile.stack_of_cell[late] - 1);
    assert_int_equal(profile.stacks[third->stack].number, profile.stack_of_cell[cache] - 1);
    assert_true(first->fit > 0.95 && third->fit < 0.4);
    assert_true(first->bytes_per_s > 900 && first->bytes_per_s < 1100);
    assert_int_equal(second->first_bytes, 0);
    assert_int_equal(second->last_bytes, 4 * KIB);
    int64_t *values = growth_values(&growth, &snapshots, 3);
    assert_int_equal(values[0], KIB);
    assert_int_equal(values[8], 9 * KIB);
    assert_int_equal(values[14], 0);
    assert_int_equal(values[15], KIB);
    assert_int_equal(values[20], 20000);
    for (size_t i = 0; i < growth.count; i++) {
        const int64_t *row = values + i * growth.point_count;
        double by_time = fit_of(&growth, row, false), by_work = fit_of(&growth, row, true);
        assert_true(fabs(growth.list[i].fit - fmax(by_time, by_work)) < 1e-6);
    }
    free(values);
    growth_free(&growth);
}

// Half of the snapshots lie in the first ms, when much was allocated and freed: the line is the
// stack's that rises from then on, not that of a block of those moments.
static void test_growth_of_uneven_snapshots(void **state) {
    (void)state;
    const uint64_t addresses[] = {PROGRAM + 0x10, PROGRAM + 0x20, PROGRAM + 0x30};
    const uint64_t step_ns = SECOND / 10000;
    struct making uneven;
    struct recording of_uneven;
    struct profile built;
    struct snapshots kept;
    struct growth growth;
    size_t size;
    making_start(&uneven);
    making_module(&uneven, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&uneven, 4242, "example");
    const uint32_t line = making_stack(&uneven, 0, &addresses[0], 1);
    const uint32_t step = making_stack(&uneven, 0, &addresses[1], 1);
    const uint32_t churn = making_stack(&uneven, 0, &addresses[2], 1);
    for (uint64_t i = 1; i <= 9; i++) {
        making_book(&uneven, churn, 1, 10 * KIB, 1, 10 * KIB);
        if (i == 2) making_book(&uneven, step, 1, 20 * KIB, 0, 0);
        making_snapshot(&uneven, CAIRN_SNAPSHOT_HIGH, "", i * step_ns);
    }
    for (uint64_t second = 1; second <= 7; second++) {
        making_book(&uneven, line, 1, KIB, 0, 0);
        making_snapshot(&uneven, CAIRN_SNAPSHOT_HIGH, "", second * SECOND);
    }
    uneven.header.end_ns = (uint64_t)8 * SECOND;
    uint8_t *made = making_finish(&uneven, true, &size);
    assert_true(recording_open_memory(made, size, &of_uneven, NULL));
    assert_true(profile_build(&of_uneven, &built, NULL) && snapshots_build(&kept, &built, NULL));
    assert_true(growth_build(&growth, &kept, 0, 256, NULL));
    assert_int_equal(growth.count, 2);
    assert_int_equal(built.stacks[growth.list[0].stack].number, built.stack_of_cell[line] - 1);
    assert_true(growth.list[0].fit > 0.95 && growth.list[1].fit < 0.6);
    assert_true(growth.list[0].bytes_per_s > 900 && growth.list[0].bytes_per_s < 1100);
    growth_free(&growth);
    snapshots_free(&kept);
    profile_free(&built);
    recording_close(&of_uneven);
    free(made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_growth_of_uneven_snapshots),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
