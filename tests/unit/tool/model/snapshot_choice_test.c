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
    check_time("10.9s", (uint64_t)10 * SECOND);
    check_time("-2s", (uint64_t)8 * SECOND);
    check_time("22:13:24", (uint64_t)4 * SECOND);
    check_time("22:13", SECOND);  // the start's minute
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

// The program did not run then: nothing is near.
static void test_outside(void **state) {
    (void)state;
    static const char *const wrong[] = {"1h", "22:14", "14:30", "-1m", "2023-11-13 22:13:26"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct snapshot_choice choice;
        struct error error;
        assert_false(snapshot_choose(&snapshots, wrong[i], &choice, &error));
        if (!strstr(error.text, "it began at 22:13:20 and lasted 10.0 s"))
            fail_msg("%s", error.text);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_held),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
