// SPDX-License-Identifier: Apache-2.0
// A search by halves finds what a search from the start finds, in lists of every small length.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tool/base/search.h"

enum { LONGEST = 20, STEP = 2 };

static void test_every_place(void **state) {
    (void)state;
    for (size_t count = 0; count <= LONGEST; count++)
        for (size_t wanted = 0; wanted <= STEP * LONGEST + 1; wanted++) {
            size_t at, plain = 0;
            while (plain < count && plain * STEP < wanted) plain++;
            search_first(at, count, at * STEP >= wanted);
            assert_int_equal(at, plain);
        }
}

// Nothing behind the end is looked at.
static void test_bounds(void **state) {
    (void)state;
    size_t at;
    int looks = 0;
    search_first(at, 0, ++looks);
    assert_int_equal(looks, 0);
    assert_int_equal(at, 0);
    search_first(at, LONGEST, (assert_in_range(at, 0, LONGEST - 1), 0));
    assert_int_equal(at, LONGEST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
