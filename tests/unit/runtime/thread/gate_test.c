// SPDX-License-Identifier: Apache-2.0
// The way in while another thread opens the recording: it is waited for, and no more once that was
// in vain, as in a child that was forked meanwhile, where no such thread is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/process/state.h"
#include "runtime/thread/gate.h"

// Each waiting takes a fifth of a second: with one for each event this would reach the limit of
// time.
enum { EVENTS = 5000 };

static void test_waits_in_vain_once(void **state) {
    (void)state;
    process_become(PROCESS_STARTING);
    for (int i = 0; i < EVENTS; i++)
        assert_null(gate_enter_slow((uintptr_t)__builtin_frame_address(0)));
    assert_int_equal(process_state(), PROCESS_STARTING);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits_in_vain_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
