// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/cpu_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

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
    assert_int_equal(cpu_budget_after(1000 * second_ns, 5000 * second_ns, RATE), RATE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decision),
        cmocka_unit_test(test_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
