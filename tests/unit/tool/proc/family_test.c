// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/family.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t start_child(void) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        for (;;) pause();
    return child;
}

// A child with a child of its own; `inner` is told by a pipe.
static pid_t start_two(pid_t *inner) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pid_t own = fork();
        if (own && write(ends[1], &own, sizeof own) != sizeof own) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ends[0], inner, sizeof *inner), sizeof *inner);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool has(const struct family *family, pid_t pid) {
    return family_has(family, pid, family_born(pid));
}

static void test_descendants_are_found(void **state) {
    (void)state;
    struct family family = {0};
    pid_t inner = 0, outer = start_two(&inner), other = start_child();
    assert_true(family_add(&family, outer));
    assert_true(family_add(&family, outer));
    assert_int_equal(family.members.count, 1);
    family_look(&family);
    assert_int_equal(family.members.count, 2);
    assert_true(has(&family, outer));
    assert_true(has(&family, inner));
    assert_false(has(&family, other));
    assert_false(has(&family, getpid()));

    end(outer);
    family_look(&family);
    assert_int_equal(family.members.count, 1);
    assert_true(has(&family, inner));
    end(inner);
    family_look(&family);
    assert_int_equal(family.members.count, 0);
    end(other);
    family_free(&family);
}

static void test_zombies_are_no_members(void **state) {
    (void)state;
    struct family family = {0};
    siginfo_t info;
    pid_t child = start_child();
    assert_true(family_add(&family, child));
    kill(child, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(family_born(child), 0);
    assert_false(family_add(&family, child));
    family_look(&family);
    assert_int_equal(family.members.count, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    family_free(&family);
}

static void test_a_pid_that_is_used_again_is_another(void **state) {
    (void)state;
    struct family family = {0};
    pid_t inner = 0, outer = start_two(&inner);
    assert_true(family_add(&family, outer));
    family.members.items[0].born--;
    family_look(&family);
    assert_int_equal(family.members.count, 0);
    end(outer);
    end(inner);
    family_free(&family);
}

static void test_age(void **state) {
    (void)state;
    const uint64_t second_ns = 1000000000, hour_ns = 3600 * second_ns;
    pid_t child = start_child();
    assert_true(family_age_ns(family_born(child)) < hour_ns);
    assert_true(family_age_ns(0) > 0);
    end(child);
}

int main(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // who waits for the child of a child that ended
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descendants_are_found),
        cmocka_unit_test(test_zombies_are_no_members),
        cmocka_unit_test(test_a_pid_that_is_used_again_is_another),
        cmocka_unit_test(test_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
