// SPDX-License-Identifier: Apache-2.0
// Estimates from units that were drawn, against populations of which everything is known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/model/drawn.h"

enum { UNITS = 3000, DRAWN = 400, ROUNDS = 1000 };

static uint64_t state = 88172645463325252u;

static double random_part(void) {
    const double whole = 18446744073709551616.0;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)state / whole;
}

static double y[UNITS], x[UNITS];

// A heap of stretches, in each of which a part of its own is of no use.
static void make_stretches(void) {
    double part = 0;
    for (int i = 0; i < UNITS; i++) {
        if (random_part() < 0.05) part = random_part() < 0.5 ? 0 : random_part();
        x[i] = 1 + random_part();
        y[i] = part * x[i];
    }
}

// Few units have any.
static void make_rare(void) {
    for (int i = 0; i < UNITS; i++) {
        x[i] = 1;
        y[i] = random_part() < 0.1 ? 1 : 0;
    }
}

static void shuffle(void) {
    for (int i = 0; i < DRAWN; i++) {
        int other = i + (int)(random_part() * (UNITS - i));
        double of_y = y[i], of_x = x[i];
        y[i] = y[other], x[i] = x[other];
        y[other] = of_y, x[other] = of_x;
    }
}

static double sum_of(const double *items) {
    double sum = 0;
    for (int i = 0; i < UNITS; i++) sum += items[i];
    return sum;
}

// Of many draws the interval covers what is true in about 95 %.
static void check_coverage(void) {
    const struct drawn drawn = {DRAWN, UNITS};
    const double true_sum = sum_of(y), true_share = true_sum / sum_of(x);
    int sums_missed = 0, shares_missed = 0;
    double mean = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct drawn_sums sums = {0};
        shuffle();
        for (int i = 0; i < DRAWN; i++) drawn_add(&sums, y[i], x[i]);
        double total = drawn_total(&drawn, &sums), share = sums.y / sums.x;
        double held = sums.x / DRAWN * UNITS;
        struct drawn_estimate of_sum =
            drawn_bounds(total, drawn_variance(&drawn, &sums), DRAWN, sums.y, 0);
        struct drawn_estimate of_share = drawn_bounds(
            share, drawn_share_variance(&drawn, &sums, share) / held / held, DRAWN, 0, 0);
        mean += total / ROUNDS;
        sums_missed += true_sum < of_sum.low || true_sum > of_sum.high;
        shares_missed += true_share < of_share.low || true_share > of_share.high;
    }
    assert_true(fabs(mean - true_sum) < true_sum * 0.01);
    assert_in_range(sums_missed, ROUNDS / 50, ROUNDS * 8 / 100);
    assert_in_range(shares_missed, ROUNDS / 50, ROUNDS * 8 / 100);
}

static void test_stretches(void **unused) {
    (void)unused;
    make_stretches();
    check_coverage();
}

static void test_rare(void **unused) {
    (void)unused;
    make_rare();
    check_coverage();
}

static void test_all_drawn_is_exact(void **unused) {
    (void)unused;
    const struct drawn drawn = {UNITS, UNITS};
    struct drawn_sums sums = {0};
    make_stretches();
    for (int i = 0; i < UNITS; i++) drawn_add(&sums, y[i], x[i]);
    assert_true(drawn_total(&drawn, &sums) == sums.y);
    assert_true(drawn_variance(&drawn, &sums) == 0);
    struct drawn_estimate exact = drawn_bounds(sums.y, 0, UNITS, sums.y, 0);
    assert_true(exact.low == sums.y && exact.high == sums.y);
}

static void test_share_is_surer_than_sum(void **unused) {
    (void)unused;
    const struct drawn drawn = {100, UNITS};
    struct drawn_sums sums = {0};
    for (int i = 0; i < 100; i++) drawn_add(&sums, i, 2 * i);
    assert_true(drawn_variance(&drawn, &sums) > 0);
    assert_true(drawn_share_variance(&drawn, &sums, 0.5) < 1e-6);
}

static void test_bounds(void **unused) {
    (void)unused;
    struct drawn_estimate seen = drawn_bounds(10, 100, 50, 8, 5);
    assert_true(seen.low == 8);          // what was seen is certain
    assert_true(seen.high > 10 + 19.6);  // and what was not read may be of the kind
    seen = drawn_bounds(10, 0, 50, 10, 5);
    assert_true(seen.low == 10 && seen.value == 10 && seen.high == 15);
    assert_true(drawn_total(&(struct drawn){0, 7}, &(struct drawn_sums){0}) == 0);
    assert_true(drawn_variance(&(struct drawn){1, 7}, &(struct drawn_sums){1, 1, 1, 1, 1}) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_rare),
        cmocka_unit_test(test_all_drawn_is_exact),
        cmocka_unit_test(test_share_is_surer_than_sum),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
