// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/examine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// Lines of the kernel's file, on processors that have one and on others.
static void test_shadow_stack(void **state) {
    static const struct {
        const char *status;
        bool has;
    } cases[] = {
        {"Name:\tp\nx86_Thread_features:\tshstk \nx86_Thread_features_locked:\tshstk wrss \n",
         true},
        {"Name:\tp\nx86_Thread_features:\tshstk wrss \n", true},
        {"Name:\tp\nx86_Thread_features:\t\nx86_Thread_features_locked:\tshstk wrss \n", false},
        {"Name:\tshstk\nState:\tR\n", false},
        {"x86_Thread_features:\tshstk", false},  // cut off
        {"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(examine_shadow_stack(cases[i].status), cases[i].has);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shadow_stack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
