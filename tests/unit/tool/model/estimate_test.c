// SPDX-License-Identifier: Apache-2.0
// Intervals of sums of samples: what they say where few samples or none were met, where large
// blocks hide small ones, and where exact totals say more.
#include "tool/model/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tool/model/measure.h"

enum { RATE = 16384 };
static const struct sampled_scale scale = {
    .rate_least = RATE, .rate_most = RATE, .blocks_weight = RATE / 16.0};

// `count` samples of blocks of this size.
static struct estimate samples_of(double size, int64_t count) {
    double chance = size < RATE ? -expm1(-size / RATE) : 1, extra = 1 / chance - 1;
    double blocks = (double)count * extra / chance;
    return sampled_estimate(&scale, count, (double)count * extra, size * size * blocks, blocks);
}

static struct estimate mixed(int64_t small, int64_t large) {
    struct estimate sum = samples_of(32, small), added = samples_of(60000, large);
    estimate_add(&sum, &added);
    return sum;
}

static void check_between(int64_t value, double least, double most) {
    if ((double)value < least || (double)value > most)
        fail_msg("%lld is not between %f and %f", (long long)value, least, most);
}

// Three samples of small blocks are three, however many large ones there are.
static void test_mixed(void **state) {
    (void)state;
    struct estimate sum = mixed(3, 21);
    assert_int_equal(estimate_samples(&sum), 3);
    assert_int_equal(estimate_block_samples(&sum), 3);
    assert_int_equal(estimate_certain(&sum), 21);
    check_between(estimate_bytes_interval(&sum), 4.5 * RATE, 5 * RATE);
    check_between(estimate_blocks_interval(&sum), 4.5 * RATE / 32, 5.2 * RATE / 16);
    struct measured measured = measured_bytes(21 * 60000 + 3 * RATE, &sum);
    assert_false(measured_is_unreliable(measured));  // most of it is certain
    check_between(measured_least(measured), 21 * 60000 - 2 * RATE, 21 * 60000);
    measured = measured_blocks(21 + 3 * 512, &sum);
    assert_true(measured_is_unreliable(measured));
    check_between(measured_least(measured), 21, 30);
}

// Certain samples say nothing of small blocks: the upper limit of none by Poisson's law.
static void test_none_seen(void **state) {
    (void)state;
    struct estimate sum = mixed(0, 21), none = samples_of(32, 0);
    assert_int_equal(estimate_samples(&sum), 0);
    assert_int_equal(estimate_certain(&sum), 21);
    check_between(estimate_bytes_interval(&sum), 3.6 * RATE, 3.7 * RATE);
    check_between(estimate_blocks_interval(&sum), 3.6 * RATE / 16, 3.7 * RATE / 16);
    assert_int_equal(measured_least(measured_bytes(21 * 60000, &sum)), 21 * 60000);
    assert_int_equal(measured_least(measured_blocks(21, &sum)), 21);
    check_between(estimate_bytes_interval(&none), 3.6 * RATE, 3.7 * RATE);
    assert_int_equal(measured_least(measured_bytes(0, &none)), 0);
}

// ... unless nothing can be missed: no smaller block was allocated, or had such a stack.
static void test_exact(void **state) {
    (void)state;
    struct sampled_scale complete = scale;
    complete.is_complete = true;
    struct estimate sum = sampled_estimate(&complete, 21, 0, 0, 0);
    assert_int_equal(estimate_bytes_interval(&sum), 0);
    assert_int_equal(estimate_blocks_interval(&sum), 0);
    sum = mixed(0, 21);
    sampled_exclude_below(&scale, 1024, &sum);
    check_between(estimate_blocks_interval(&sum), 3.6 * RATE / 1024, 3.7 * RATE / 1024);
    check_between(estimate_bytes_interval(&sum), 3.6 * RATE, 3.7 * RATE);
    sampled_exclude_below(&scale, RATE, &sum);
    assert_int_equal(estimate_bytes_interval(&sum), 0);
    assert_int_equal(estimate_blocks_interval(&sum), 0);
    const struct estimate counted = {0};
    assert_int_equal(estimate_bytes_interval(&counted), 0);
}

// What was not sampled is no more than what was counted beside the samples.
static void test_limits(void **state) {
    (void)state;
    struct estimate sum = mixed(0, 21);
    sum.bytes_limit = 5000;
    sum.blocks_limit = 100;
    assert_int_equal(estimate_bytes_interval(&sum), 5000);
    assert_int_equal(estimate_blocks_interval(&sum), 100);
    // two samples, which stand for 32,768 bytes of the 40,000 that can be: 7,232 more, or all less
    struct estimate few = samples_of(32, 2);
    few.bytes_limit = 40000;
    few.blocks_limit = 1500;
    check_between(estimate_bytes_interval(&few), 2 * RATE, 3.2 * RATE);
    check_between(estimate_blocks_interval(&few), 1023, 1024);
    // of processes that are added up there is none
    estimate_forget_limits(&sum);
    check_between(estimate_bytes_interval(&sum), 3.6 * RATE, 3.7 * RATE);
}

static void test_limits_of_sums(void **state) {
    (void)state;
    struct estimate sum = {0}, known = mixed(0, 3), unknown = mixed(0, 4);
    known.bytes_limit = 5000;
    estimate_add(&sum, &known);
    estimate_add(&sum, &known);
    assert_int_equal(estimate_bytes_interval(&sum), 5000);
    assert_int_equal(estimate_certain(&sum), 6);
    estimate_add(&sum, &unknown);
    check_between(estimate_bytes_interval(&sum), 3.6 * RATE, 3.7 * RATE);
}

// Variances add up; what may have been missed is the same again for all stacks together.
static void test_missed_once(void **state) {
    (void)state;
    struct estimate sum = {0}, one = samples_of(32, 1);
    for (int i = 0; i < 100; i++) estimate_add(&sum, &one);
    assert_int_equal(estimate_samples(&sum), 100);
    check_between(estimate_bytes_interval(&sum), 19.6 * RATE, 19.8 * RATE);
    check_between(estimate_blocks_interval(&sum), 19.6 * RATE / 32, 19.8 * RATE / 32);
}

// Thirty samples, nearly all blocks of which stand behind one.
static void test_effective(void **state) {
    (void)state;
    struct estimate sum = samples_of(10000, 29), small = samples_of(32, 1);
    estimate_add(&sum, &small);
    assert_int_equal(estimate_samples(&sum), 30);
    assert_int_equal(estimate_block_samples(&sum), 1);
    assert_int_equal(estimate_certain(&sum), 0);
    assert_false(measured_is_unreliable(measured_bytes(30 * RATE, &sum)));
    assert_true(measured_is_unreliable(measured_blocks(575, &sum)));
}

// By Poisson's law, without chance: of blocks of one size, how often the interval has the truth.
static double coverage(double mean) {
    double chance = exp(-mean), sum = 0;
    const double size = 16;
    for (int64_t count = 0; (double)count < 3 * mean + 30; count++) {
        struct estimate estimate = samples_of(size, count);
        double off = fabs((double)count - mean) * RATE;
        if (off <= (double)estimate_bytes_interval(&estimate) + 1) sum += chance;
        chance *= mean / (double)(count + 1);
    }
    return sum;
}

static void test_coverage(void **state) {
    (void)state;
    for (double mean = 0.1; mean < 120; mean *= 1.07) {
        double share = coverage(mean);
        if (share < 0.93 || (mean >= 20 && share > 0.97)) fail_msg("%f: %f", mean, share);
    }
}

// A damaged file may hold any number.
static void test_damaged(void **state) {
    (void)state;
    const double odd[] = {NAN, INFINITY, -INFINITY, -1, 1e300, 0};
    enum { ODD = sizeof odd / sizeof *odd };
    for (int i = 0; i < ODD * ODD; i++) {
        struct estimate estimate = {.samples = i % 2 ? INT64_MIN : INT64_MAX,
                                    .uncertain = odd[i % ODD],
                                    .extra_blocks = odd[i / ODD],
                                    .bytes_variance = odd[i / ODD],
                                    .blocks_variance = odd[i % ODD],
                                    .bytes_weight = RATE,
                                    .blocks_weight = RATE,
                                    .bytes_limit = odd[i % ODD],
                                    .blocks_limit = odd[i / ODD]};
        assert_true(estimate_bytes_interval(&estimate) >= 0);
        assert_true(estimate_blocks_interval(&estimate) >= 0);
        assert_true(estimate_block_samples(&estimate) >= 0);
        assert_true(estimate_certain(&estimate) >= 0);
        measured_least(measured_bytes(100, &estimate));
        measured_least(measured_blocks(100, &estimate));
        measured_most(measured_blocks(100, &estimate));
    }
}

// The interval ends at what was counted, above or below the estimate; of blocks that were there
// before both bounds add up, and beside what has none there is none.
static void test_most(void **state) {
    (void)state;
    struct sampled_scale own = scale, before = scale;
    own.own_bytes = 4 * RATE;
    own.own_blocks = 40;
    before.before_bytes = 3 * RATE;
    before.before_blocks = 30;
    struct estimate sum = sampled_estimate(&own, 5, 50, 5.0 * RATE * RATE, 500);
    assert_int_equal(measured_most(measured_bytes(3 * RATE, &sum)), 4 * RATE);
    assert_int_equal(measured_most(measured_bytes(5 * RATE, &sum)), 4 * RATE);
    assert_int_equal(measured_most(measured_blocks(55, &sum)), 40);
    assert_int_equal(measured_shown(measured_bytes(3 * RATE, &sum)), 3 * RATE);
    assert_int_equal(measured_shown(measured_bytes(5 * RATE, &sum)), 4 * RATE);
    assert_int_equal(measured_shown(measured_blocks(55, &sum)), 40);
    const struct estimate added = sampled_estimate(&before, 1, 10, RATE * RATE, 100);
    estimate_add(&sum, &added);
    assert_int_equal(measured_most(measured_bytes(6 * RATE, &sum)), 7 * RATE);
    const struct estimate unbounded = samples_of(32, 3);
    estimate_add(&sum, &unbounded);
    assert_true(measured_most(measured_bytes(9 * RATE, &sum)) > 9 * RATE);
}

// Checks that a peak is no less than what was counted at a moment, whatever samples say.
static void test_least(void **state) {
    (void)state;
    struct estimate sum = samples_of(32, 0);
    sum.bytes_least = 9 * RATE;
    sum.blocks_least = 500;
    struct measured bytes = measured_bytes(0, &sum), blocks = measured_blocks(0, &sum);
    assert_int_equal(measured_least(bytes), 9 * RATE);
    assert_int_equal(measured_shown(bytes), 9 * RATE);
    assert_int_equal(measured_most(bytes), 9 * RATE);
    assert_int_equal(measured_shown(blocks), 500);
    assert_int_equal(measured_shown(measured_bytes(11 * RATE, &sum)), 11 * RATE);
    sum.before_bytes_most = 9 * RATE;  // and no more
    assert_int_equal(measured_interval(measured_bytes(0, &sum)), 0);
    assert_int_equal(measured_shown(measured_bytes(0, &sum)), 9 * RATE);
    const struct estimate added = samples_of(32, 0);
    estimate_forget_limits(&sum);
    estimate_add(&sum, &added);
    assert_int_equal(measured_shown(measured_bytes(0, &sum)), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),          cmocka_unit_test(test_none_seen),
        cmocka_unit_test(test_exact),          cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_of_sums), cmocka_unit_test(test_missed_once),
        cmocka_unit_test(test_effective),      cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_most),
        cmocka_unit_test(test_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
