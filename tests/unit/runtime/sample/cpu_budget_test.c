// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/cpu_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

enum { RATE = 512 << 10 };
static const struct pace_limits half_percent = {5000, RATE};
static const uint64_t second_ns = 1000000000;

static uint64_t rate_after(uint64_t own_ns, uint64_t rate) {
    return cpu_budget_rate(&half_percent, own_ns, second_ns, rate);
}

// Half a percent of a second is 5 ms; a quarter of that is 1.25 ms.
static void test_decision(void **state) {
    (void)state;
    assert_int_equal(rate_after(5000001, RATE), 2 * RATE);
    assert_int_equal(rate_after(5000000, RATE), RATE);
    assert_int_equal(rate_after(2000000, 4 * RATE), 4 * RATE);
    assert_int_equal(rate_after(1000000, 4 * RATE), 2 * RATE);
    assert_int_equal(rate_after(0, RATE), RATE);  // never below what was asked for
    assert_int_equal(rate_after(0, RATE + RATE / 2), RATE + RATE / 2);
    assert_int_equal(cpu_budget_rate(&half_percent, 1, 0, RATE), 2 * RATE);
}

static void test_any_time(void **state) {
    (void)state;
    const struct pace_limits none = {0, RATE};
    cpu_budget_start(&none);
    assert_int_equal(cpu_budget_after(1000 * second_ns, RATE), RATE);
}

// Time in which the thread did not run is not the sample's.
static void test_waiting_costs_nothing(void **state) {
    enum { WAIT_NS = 50000000 };
    (void)state;
    const struct timespec wait = {0, WAIT_NS};
    cpu_budget_start(&half_percent);
    uint64_t start_ns = cpu_budget_clock_ns();
    nanosleep(&wait, NULL);
    assert_true(cpu_budget_clock_ns() - start_ns < WAIT_NS / 2);
}

// A sample that is the first one of its stack says little of those to come.
static void test_usual_cost(void **state) {
    (void)state;
    cpu_budget_start(&half_percent);
    assert_int_equal(cpu_budget_usual_ns(900000), 900000);
    for (int i = 0; i < 10; i++) assert_int_equal(cpu_budget_usual_ns(8000), 8000);
    assert_int_equal(cpu_budget_usual_ns(328000), 18000);
    assert_int_equal(cpu_budget_usual_ns(8000), 8000);
    for (int i = 0; i < 200; i++) cpu_budget_usual_ns(64000);
    assert_in_range(cpu_budget_usual_ns(64000), 60000, 64000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decision),
        cmocka_unit_test(test_any_time),
        cmocka_unit_test(test_waiting_costs_nothing),
        cmocka_unit_test(test_usual_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
