// SPDX-License-Identifier: Apache-2.0
// The oracle is libm, which the tests may use.
#include "runtime/sample/maths.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/sample/prng.h"

enum { TRIES = 200000 };

static void check_close(double found, double exact, const char *what, double at) {
    const double most_units = 4;
    if (fabs(found - exact) > most_units * DBL_EPSILON * fabs(exact))
        fail_msg("%s(%.17g) is %.17g, not %.17g", what, at, found, exact);
}

static void test_log(void **state) {
    (void)state;
    struct prng chance;
    prng_start(&chance, 1, 1);
    assert_true(maths_log(1) == 0);
    check_close(maths_log(0.5), log(0.5), "log", 0.5);
    check_close(maths_log(ldexp(1, -53)), log(ldexp(1, -53)), "log", ldexp(1, -53));
    for (int i = 0; i < TRIES; i++) {
        double x = prng_share(&chance);
        // near 1 the logarithm is near 0: what counts there is the distance
        if (x < 0.99) check_close(maths_log(x), log(x), "log", x);
        assert_true(fabs(maths_log(x) - log(x)) < 1e-15 * (1 - log(x)));
    }
}

static void test_share(void **state) {
    (void)state;
    struct prng chance;
    prng_start(&chance, 2, 1);
    assert_true(maths_share(0) == 0);
    check_close(maths_share(1), -expm1(-1), "share", 1);
    for (int i = 0; i < TRIES; i++) {
        double x = ldexp(prng_share(&chance), -(i % 60));
        check_close(maths_share(x), -expm1(-x), "share", x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
