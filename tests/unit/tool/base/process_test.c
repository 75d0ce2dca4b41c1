// SPDX-License-Identifier: Apache-2.0
#include "tool/base/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_own_state(void **state) {
    (void)state;
    assert_int_equal(process_state(getpid(), 0), 'R');
    assert_int_equal(process_state(getpid(), gettid()), 'R');
}

// The name of a process stands in front of its state and may look like the end of one.
static void test_name_with_brackets(void **state) {
    (void)state;
    char before[16];
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) Z (b"), 0);
    assert_int_equal(process_state(getpid(), 0), 'R');
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

static void test_stopped_then_ended_then_gone(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_true(child > 0);
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_int_equal(process_state(child, 0), 'T');
    assert_false(process_has_ended('T'));
    kill(child, SIGCONT);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(process_has_ended(process_state(child, 0)));
    assert_int_equal(process_state(child, 0), 'Z');
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(process_state(child, 0), 0);
    assert_true(process_has_ended(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_state),
        cmocka_unit_test(test_name_with_brackets),
        cmocka_unit_test(test_stopped_then_ended_then_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
