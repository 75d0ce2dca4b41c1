// SPDX-License-Identifier: Apache-2.0
// The small line of a process: which stretch of its time has which value.
#include "tool/web/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

enum { MIB = 1 << 20, POINT_NS = 1000, POINTS = LIFE_STEPS / 2 };

static struct making making;

static void begin(uint64_t end_ns) {
    making_start(&making);
    making_thread(&making, 4242, "sample");
    making.header.end_ns = end_ns;
    making.header.totals.point_ns = POINT_NS;
    making.header.totals.peak_bytes = 8 * MIB;
    making.header.totals.peak_ns = 3 * POINT_NS + 1;
}

static bool read_made(uint64_t live[LIFE_STEPS]) {
    struct recording recording;
    size_t size;
    uint8_t *bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    bool is_there = life_read(&recording, live);
    recording_close(&recording);
    free(bytes);
    return is_there;
}

// Two steps a point: nothing, up to the peak, down to a mebibyte, which stays.
static void test_each_stretch_has_its_highest(void **state) {
    (void)state;
    uint64_t live[LIFE_STEPS];
    begin(POINTS * POINT_NS);
    making_point(&making, 3, 0, 8 * MIB, 4 * MIB);
    making_point(&making, 4, MIB, 4 * MIB, MIB);
    assert_true(read_made(live));
    assert_in_range(live[0], 0, MIB / 2);
    assert_in_range(live[5], 0, MIB / 2);
    assert_int_equal(live[6], 8 * MIB);
    assert_int_equal(live[7], 8 * MIB);
    assert_in_range(live[8], 4 * MIB, 5 * MIB);
    assert_in_range(live[10], MIB, 2 * MIB);
    assert_in_range(live[LIFE_STEPS - 1], MIB, 2 * MIB);
}

// What goes on is drawn up to the last that is known.
static void test_a_process_that_runs(void **state) {
    (void)state;
    uint64_t live[LIFE_STEPS];
    begin(0);
    making_point(&making, 3, 0, 8 * MIB, 8 * MIB);
    assert_true(read_made(live));
    assert_in_range(live[0], 0, MIB / 2);
    assert_int_equal(live[LIFE_STEPS - 1], 8 * MIB);
}

static void test_a_snapshot_is_no_life(void **state) {
    (void)state;
    uint64_t live[LIFE_STEPS];
    begin(0);
    making.header.totals.point_ns = 0;
    making.header.totals.peak_bytes = 0;
    assert_false(read_made(live));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_stretch_has_its_highest),
        cmocka_unit_test(test_a_process_that_runs),
        cmocka_unit_test(test_a_snapshot_is_no_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
