// SPDX-License-Identifier: Apache-2.0
// Memory that is put aside: how much of it is given, and which piece never is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/base/reserve.h"

#define STOP_OF_ALL_BYTES ((size_t)32 << 20)
#define STOP_OF_ONE_BYTES ((size_t)1 << 20)

// A stop of one thread costs what is for one: what is kept for all stays as it is.
static void only_so_much_is_given(void **state) {
    struct reserve reserve = {0};
    (void)state;
    assert_true(reserve_take(&reserve, STOP_OF_ALL_BYTES));
    size_t all = reserve.pieces.count;
    reserve_use(&reserve, STOP_OF_ONE_BYTES);
    size_t given = all - reserve.pieces.count;
    assert_in_range(given, 1, all * STOP_OF_ONE_BYTES / STOP_OF_ALL_BYTES);
    assert_true(reserve_take(&reserve, STOP_OF_ALL_BYTES));
    assert_int_equal(reserve.pieces.count, all);
    reserve_free(&reserve);
}

static void the_uppermost_is_kept(void **state) {
    struct reserve reserve = {0};
    (void)state;
    assert_true(reserve_take(&reserve, STOP_OF_ONE_BYTES));
    uintptr_t uppermost = 0;
    for (size_t i = 0; i < reserve.pieces.count; i++)
        if ((uintptr_t)reserve.pieces.items[i] > uppermost)
            uppermost = (uintptr_t)reserve.pieces.items[i];
    reserve_use(&reserve, STOP_OF_ALL_BYTES);
    assert_int_equal(reserve.pieces.count, 1);
    assert_int_equal((uintptr_t)reserve.pieces.items[0], uppermost);
    reserve_free(&reserve);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_so_much_is_given),
        cmocka_unit_test(the_uppermost_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
