// SPDX-License-Identifier: Apache-2.0
#include "tool/base/clock.h"
#include "tool/proc/threads.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/proc/process.h"

#define SECOND_NS UINT64_C(1000000000)

static int told_by_second;

static void *second_thread(void *unused) {
    char ready = 1;
    if (write(told_by_second, &ready, 1) != 1) _exit(1);
    for (;;) pause();
    return unused;
}

static pid_t start_two_threads(void) {
    int ends[2];
    char ready;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pthread_t thread;
        told_by_second = ends[1];
        if (pthread_create(&thread, NULL, second_thread, NULL)) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void test_stop_and_go(void **state) {
    (void)state;
    struct threads threads = {0};
    struct error error = {{0}};
    pid_t child = start_two_threads();
    assert_true(threads_stop(&threads, child, &error));
    assert_int_equal(threads.stopped.count, 2);
    threads_go(&threads, 0);
    assert_int_equal(threads.stopped.count, 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    threads_free(&threads);
}

static char state_of_other(pid_t child, pid_t tid) {
    pid_t other = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        pid_t found = (pid_t)strtol(entry->d_name, NULL, 10);
        if (found > 0 && found != tid) other = found;
    }
    if (directory) closedir(directory);
    return process_state(child, other);
}

static void test_one_alone(void **state) {
    (void)state;
    struct threads threads = {0};
    struct error error = {{0}};
    pid_t child = start_two_threads();
    assert_true(threads_stop_one(&threads, child, child, &error));
    assert_int_equal(threads.stopped.count, 1);
    assert_int_equal(process_state(child, child), 't');
    assert_int_not_equal(state_of_other(child, child), 't');
    threads_go(&threads, 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(threads_stop_one(&threads, child, child, &error));
    assert_int_equal(threads.stopped.count, 0);
    threads_free(&threads);
}

// What the scheduler knows of a thread is as before, whatever that was.
static void test_scheduling_is_kept(void **state) {
    (void)state;
    enum { NICE = 5 };
    struct threads threads = {0};
    struct error error = {{0}};
    struct sched_param none = {0};
    pid_t child = start_two_threads();
    assert_int_equal(setpriority(PRIO_PROCESS, (id_t)child, NICE), 0);
    for (int policy = SCHED_OTHER; policy <= SCHED_IDLE; policy++) {
        bool is_usual = policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
        if (!is_usual || sched_setscheduler(child, policy, &none) != 0) continue;
        assert_true(threads_stop(&threads, child, &error));
        assert_int_equal(sched_getscheduler(child), policy);
        threads_go(&threads, 0);
        assert_int_equal(sched_getscheduler(child), policy);
        assert_int_equal(getpriority(PRIO_PROCESS, (id_t)child), NICE);
    }
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    threads_free(&threads);
}

// A thread that is of a real-time policy already stays what it is.
static void test_boost(void **state) {
    (void)state;
    struct sched_boost first, second;
    int usual = getpriority(PRIO_PROCESS, 0);
    sched_boost(&first, 0);
    if (!first.is_taken) skip();
    assert_true(sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) < usual);
    int policy = sched_getscheduler(0);
    sched_boost(&second, 0);
    sched_unboost(&second, 0);
    assert_int_equal(sched_getscheduler(0), policy);
    sched_unboost(&first, 0);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), usual);
}

// Killed while it stands: the main thread tells nothing as long as nobody waits for the other one.
static void test_end_is_seen_in_the_main_thread(void **state) {
    (void)state;
    struct threads threads = {0};
    struct error error = {{0}};
    pid_t child = start_two_threads();
    assert_true(threads_stop(&threads, child, &error));
    assert_int_equal(threads_wait(child, 1), -1);
    kill(child, SIGKILL);
    uint64_t end = clock_now_ns() + 10 * SECOND_NS;
    int status = -1;
    while (status && clock_now_ns() < end) status = threads_wait(child, 1);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < threads.stopped.count; i++)
        if (threads.stopped.items[i].tid != child)
            waitpid(threads.stopped.items[i].tid, NULL, __WALL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    threads_free(&threads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_and_go),
        cmocka_unit_test(test_one_alone),
        cmocka_unit_test(test_scheduling_is_kept),
        cmocka_unit_test(test_boost),
        cmocka_unit_test(test_end_is_seen_in_the_main_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
