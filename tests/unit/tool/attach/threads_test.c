// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/threads.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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
    array_free(&threads.stopped);
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
    uint64_t end = threads_now_ns() + 10 * SECOND_NS;
    int status = -1;
    while (status && threads_now_ns() < end) status = threads_wait(child, 1);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < threads.stopped.count; i++)
        if (threads.stopped.items[i].tid != child)
            waitpid(threads.stopped.items[i].tid, NULL, __WALL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    array_free(&threads.stopped);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_and_go),
        cmocka_unit_test(test_end_is_seen_in_the_main_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
