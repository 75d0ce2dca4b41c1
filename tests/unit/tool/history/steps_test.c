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

// Adds runs that vary by so much, one a commit, or several.
static void add_level(struct series *series, uint32_t *commit, size_t runs, size_t runs_a_commit,
                      int64_t value, double noise) {
    for (size_t i = 0; i < runs; i++) {
        if (i % runs_a_commit == 0) ++*commit;
        add(series, *commit, value + llround(noise * (2 * uniform() - 1)), true);
    }
}

static void check_steps(const struct series *series, const size_t *firsts, size_t count) {
    struct steps steps;
    assert_true(steps_find(series->values, series->count, &steps));
    assert_int_equal(steps.list.count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(steps.list.items[i].first, firsts[i]);
    steps_free(&steps);
}

// A level that came and went hides neither itself nor those before and after it.
static void levels_that_come_and_go_hide_nothing(void **context) {
    enum { TRIALS = 50, LEVELS = 6 };
    static const struct {
        size_t runs;
        int64_t value;
        double noise;
    } levels[LEVELS] = {{8, 7978, 0},  {8, 24676, 0}, {18, 7978, 0},
                        {32, 8478, 3}, {8, 8585, 3},  {8, 10341, 3}};
    (void)context;
    state = 3;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct series series = {0};
        uint32_t commit = 0;
        size_t firsts[LEVELS];
        for (size_t i = 0; i < LEVELS; i++) {
            firsts[i] = series.count;
            add_level(&series, &commit, levels[i].runs, 2, levels[i].value, levels[i].noise);
            check_steps(&series, firsts + 1, i);
        }
    }
}

// Up and down by turns, at equal and at unequal lengths.
static void levels_by_turns_are_all_found(void **context) {
    enum { LEVELS = 9 };
    (void)context;
    state = 5;
    for (size_t longer = 0; longer < 8; longer++) {
        struct series series = {0};
        uint32_t commit = 0;
        size_t firsts[LEVELS];
        for (size_t i = 0; i < LEVELS; i++) {
            firsts[i] = series.count;
            add_level(&series, &commit, 6 + (i % 2) * longer, 1, 5000 + (int64_t)(i % 2) * 400, 4);
        }
        check_steps(&series, firsts + 1, LEVELS - 1);
    }
}

// A quarter more where runs vary by one in 8,000: known at once, and later.
static void one_or_two_runs_a_commit_are_enough(void **context) {
    (void)context;
    state = 9;
    for (size_t runs = 1; runs <= 2; runs++) {
        struct series series = {0};
        uint32_t commit = 0;
        add_level(&series, &commit, 30, runs, 8003, 1);
        check_steps(&series, NULL, 0);
        for (size_t later = 0; later < 6; later++) {
            add_level(&series, &commit, runs, runs, 10003, 1);
            check_steps(&series, &(size_t){30}, 1);
        }
    }
}

// Runs of one commit tell the noise, however often commits change the figure.
static void runs_of_one_commit_are_the_noise(void **context) {
    (void)context;
    struct series series = {0};
    uint32_t commit = 0;
    size_t firsts[8];
    state = 13;
    for (size_t i = 0; i < 8; i++) {
        firsts[i] = series.count;
        add_level(&series, &commit, 3, 3, 10000 + (int64_t)(i * i) * 700, 1);
    }
    check_steps(&series, firsts + 1, 7);
    series = (struct series){0};
    for (size_t i = 0; i < 8; i++) {  // exact ones have none
        firsts[i] = series.count;
        add_level(&series, &commit, 2, 2, 10000 + (int64_t)i, 0);
    }
    check_steps(&series, firsts + 1, 7);
}

static struct steps_open open_of(const struct series *series) {
    struct steps steps;
    assert_true(steps_find(series->values, series->count, &steps));
    struct steps_open open = steps.open;
    steps_free(&steps);
    return open;
}

// A difference that too few runs show is neither a step nor none.
static void too_few_runs_are_said(void **context) {
    (void)context;
    struct series series = {0};
    uint32_t commit = 0;
    state = 17;
    add_level(&series, &commit, 2, 1, 34006793, 0);
    assert_false(open_of(&series).is_there);
    add_level(&series, &commit, 1, 1, 35340793, 0);
    struct steps_open open = open_of(&series);
    assert_true(open.is_there);
    assert_int_equal(open.first, 2);
    assert_int_equal(open.runs_before, 2);
    assert_int_equal(open.missing, 3);
    assert_int_equal(open.after - open.before, 1334000);
    series = (struct series){0};
    add_level(&series, &commit, 6, 1, 1000, 0);
    add_level(&series, &commit, 1, 1, 1010, 0);
    open = open_of(&series);
    assert_true(open.is_there);
    assert_int_equal(open.missing, 1);
    add(&series, commit, 1010, true);
    check_steps(&series, &(size_t){6}, 1);
    assert_false(open_of(&series).is_there);
    series = (struct series){0};  // within the noise is nothing to wait for
    add_level(&series, &commit, 40, 1, 1000, 10);
    add_level(&series, &commit, 1, 1, 1012, 0);
    assert_false(open_of(&series).is_there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_figures_step_by_one),
        cmocka_unit_test(levels_of_a_counted_step),
        cmocka_unit_test(repeats_show_noise),
        cmocka_unit_test(bounds_hide_what_is_within),
        cmocka_unit_test(estimates_step_beyond_their_intervals),
        cmocka_unit_test(noise_makes_no_steps),
        cmocka_unit_test(levels_that_come_and_go_hide_nothing),
        cmocka_unit_test(levels_by_turns_are_all_found),
        cmocka_unit_test(one_or_two_runs_a_commit_are_enough),
        cmocka_unit_test(runs_of_one_commit_are_the_noise),
        cmocka_unit_test(too_few_runs_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
