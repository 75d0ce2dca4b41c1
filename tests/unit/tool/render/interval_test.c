// SPDX-License-Identifier: Apache-2.0
// Intervals in words: none contradicts the figure that stands before it.
#include "tool/render/interval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tool/model/estimate.h"

enum { RATE = 16384, SAMPLES = 25 };

static struct estimate some(double counted) {
    struct sampled_scale scale = {.rate_least = RATE, .rate_most = RATE, .own_bytes = counted};
    return sampled_estimate(&scale, SAMPLES, SAMPLES, (double)SAMPLES * RATE * RATE, SAMPLES);
}

static void check(double counted, const char *figure, const char *amount, const char *note) {
    const struct estimate estimate = some(counted);
    struct measured measured = measured_bytes(SAMPLES * RATE, &estimate);
    assert_string_equal(units_size(measured_shown(measured)).text, figure);
    assert_string_equal(interval_amount(measured, true, false).text, amount);
    assert_string_equal(interval_note(measured).text, note);
}

static void test_bounds(void **state) {
    (void)state;
    check(100.0 * RATE, "400 KiB", " \xc2\xb1 160 KiB", "\xc2\xb1 40 %, 25 samples");
    check(30.0 * RATE, "400 KiB", " (240 KiB to 480 KiB)", "\xc2\xb1 40 %, 25 samples");
    check(20.0 * RATE, "320 KiB", " (240 KiB to 320 KiB)", "at most, 25 samples");
    check(10.0 * RATE, "160 KiB", " (at most)", "at most, 25 samples");
}

// Large blocks that are certain, beside which little can have been missed: the same figure twice
// would say nothing.
static void test_certain(void **state) {
    (void)state;
    enum { MIB = 1 << 20, BLOCKS = 111 };
    struct sampled_scale scale = {.rate_least = RATE,
                                  .rate_most = RATE,
                                  .own_bytes = (BLOCKS + 0.25) * MIB,
                                  .bytes_limit = MIB / 4.0};
    const struct estimate estimate = sampled_estimate(&scale, BLOCKS, 0, 0, 0);
    struct measured measured = measured_bytes((int64_t)BLOCKS * MIB, &estimate);
    assert_string_equal(interval_amount(measured, true, false).text, " (+ 0.1 %)");
    assert_string_equal(interval_amount(measured, true, true).text, " (up to 116452013)");
    const struct estimate unsure = sampled_estimate(&scale, BLOCKS + 1, 1, 1e8, 1);
    measured = measured_bytes((int64_t)BLOCKS * MIB + RATE, &unsure);
    assert_string_equal(interval_amount(measured, true, false).text, " (\xc2\xb1 0.1 %)");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_certain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
