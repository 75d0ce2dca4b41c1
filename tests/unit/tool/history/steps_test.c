// SPDX-License-Identifier: Apache-2.0
// Steps in made-up series: what was counted, what varies, and how often noise alone makes a step.
#include "tool/history/steps.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { VALUES_MAX = 128 };

static uint64_t state;

static double uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) {
    return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979 * uniform());
}

struct series {
    struct step_value values[VALUES_MAX];
    size_t count;
};

static void add(struct series *series, uint32_t commit, int64_t value, bool can_vary) {
    series->values[series->count++] =
        (struct step_value){.commit = commit, .value = value, .can_vary = can_vary};
}

static size_t count_steps(const struct series *series, size_t *first) {
    struct steps steps;
    assert_true(steps_find(series->values, series->count, &steps));
    size_t count = steps.list.count;
    if (first) *first = count ? steps.list.items[0].first : 0;
    steps_free(&steps);
    return count;
}

static void counted_figures_step_by_one(void **context) {
    (void)context;
    struct series series = {0};
    size_t first;
    assert_int_equal(count_steps(&series, NULL), 0);
    for (uint32_t i = 0; i < 100; i++) add(&series, i, 1000, false);
    assert_int_equal(count_steps(&series, NULL), 0);
    for (size_t i = 63; i < 100; i++) series.values[i].value++;
    assert_int_equal(count_steps(&series, &first), 1);
    assert_int_equal(first, 63);
    series.values[99].value = INT64_MIN;
    assert_int_equal(count_steps(&series, NULL), 2);
}

static void levels_of_a_counted_step(void **context) {
    (void)context;
    struct series series = {0};
    struct steps steps;
    add(&series, 0, 5, false);
    add(&series, 0, 5, false);
    add(&series, 3, 4, false);
    assert_true(steps_find(series.values, series.count, &steps));
    assert_int_equal(steps.list.count, 1);
    assert_int_equal(steps.list.items[0].before, 5);
    assert_int_equal(steps.list.items[0].after, 4);
    assert_false(steps.is_noisy);
    steps_free(&steps);
}

// Two runs of one commit differ: from then on a difference is no step by itself.
static void repeats_show_noise(void **context) {
    (void)context;
    struct series series = {0};
    for (uint32_t i = 0; i < 40; i++) add(&series, i / 2, 1000 + i % 2, false);
    assert_int_equal(count_steps(&series, NULL), 0);
    size_t first;
    for (size_t i = 20; i < 40; i++) series.values[i].value += 50;
    assert_int_equal(count_steps(&series, &first), 1);
    assert_int_equal(first, 20);
}

static void bounds_hide_what_is_within(void **context) {
    (void)context;
    struct series series = {0};
    size_t first;
    for (uint32_t i = 0; i < 8; i++) {
        add(&series, i, 1000 + i % 3, true);
        series.values[i].bound = 2;
    }
    assert_int_equal(count_steps(&series, NULL), 0);
    series.values[6].value = series.values[7].value = 2000;
    assert_int_equal(count_steps(&series, &first), 1);
    assert_int_equal(first, 6);
    series.values[6].value = 1000;  // a single one is not enough where threads decide
    assert_int_equal(count_steps(&series, NULL), 0);
}

static void estimates_step_beyond_their_intervals(void **context) {
    (void)context;
    struct series series = {0};
    size_t first;
    state = 7;
    for (uint32_t i = 0; i < 100; i++) {
        add(&series, i, 1000000 + (int64_t)(1000 * normal()), false);
        series.values[i].deviation = 1000;
    }
    assert_int_equal(count_steps(&series, NULL), 0);
    series.values[99].value += 10000;  // one run is enough where its noise is known
    assert_int_equal(count_steps(&series, &first), 1);
    assert_int_equal(first, 99);
}

enum noise { NOISE_NORMAL, NOISE_UNIFORM, NOISE_TWO_VALUES, NOISE_RARE, NOISE_KINDS };

static double noise_of(int kind) {
    switch (kind) {
    case NOISE_NORMAL:
        return normal();
    case NOISE_UNIFORM:
        return uniform();
    case NOISE_TWO_VALUES:
        return uniform() < 0.5;
    default:
        return uniform() < 0.03;
    }
}

// Of 200 series of 100 equal runs that vary by chance none, or hardly one, makes a step; a planted
// step of ten times the noise is found at its commit.
static void noise_makes_no_steps(void **context) {
    enum { TRIALS = 200, RUNS = 100, PLANTED = 61, NOISE = 1000, MOST_FALSE = 2 };
    (void)context;
    state = 11;
    for (int kind = 0; kind < NOISE_KINDS; kind++) {
        size_t alarms = 0, found = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            struct series series = {0};
            size_t first;
            for (uint32_t i = 0; i < RUNS; i++)
                add(&series, i, 100000 + (int64_t)(NOISE * noise_of(kind)), true);
            alarms += count_steps(&series, NULL) != 0;
            for (size_t i = PLANTED; i < RUNS; i++) series.values[i].value += 10 * NOISE;
            found += count_steps(&series, &first) >= 1 && first == PLANTED;
        }
        assert_in_range(alarms, 0, MOST_FALSE);
        assert_in_range(found, TRIALS - MOST_FALSE, TRIALS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_figures_step_by_one),
        cmocka_unit_test(levels_of_a_counted_step),
        cmocka_unit_test(repeats_show_noise),
        cmocka_unit_test(bounds_hide_what_is_within),
        cmocka_unit_test(estimates_step_beyond_their_intervals),
        cmocka_unit_test(noise_makes_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
