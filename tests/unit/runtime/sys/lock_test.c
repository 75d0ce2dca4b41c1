// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/lock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { ME = 1, OTHER = 2, HELD_US = 100000, THREADS = 8, TURNS = 20000 };

static struct lock lock;
static long turns;

static void test_it_has_one_holder_who_does_not_get_it_twice(void **state) {
    (void)state;
    assert_true(lock_take(&lock, ME));
    assert_false(lock_take(&lock, ME));
    lock_give_back(&lock);
    assert_true(lock_take(&lock, OTHER));
    lock_give_back(&lock);
}

static void *give_back_later(void *argument) {
    (void)argument;
    usleep(HELD_US);
    lock_give_back(&lock);
    return NULL;
}

// As long as a preempted thread waits for a processor on a loaded machine.
static void test_a_holder_that_runs_again_is_waited_for(void **state) {
    (void)state;
    pthread_t holder;
    assert_true(lock_take(&lock, OTHER));
    assert_int_equal(pthread_create(&holder, NULL, give_back_later, NULL), 0);
    assert_true(lock_take(&lock, ME));
    assert_int_equal(pthread_join(holder, NULL), 0);
    lock_give_back(&lock);
}

static void test_a_stuck_holder_is_waited_for_once(void **state) {
    (void)state;
    assert_true(lock_take(&lock, OTHER));
    assert_false(lock_take(&lock, ME));
    assert_true(lock.is_stuck);
    for (int i = 0; i < 100; i++) assert_false(lock_take(&lock, ME));  // 100 long waits: minutes
    lock_give_back(&lock);
    assert_false(lock.is_stuck);
    assert_true(lock_take(&lock, ME));
    lock_give_back(&lock);
}

static void *take_turns(void *me) {
    for (int i = 0; i < TURNS; i++) {
        if (!lock_take(&lock, (uintptr_t)me)) return me;
        turns++;
        lock_give_back(&lock);
    }
    return NULL;
}

static void test_threads_take_turns_and_none_goes_without(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    void *failed;
    for (long i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(turns, (long)THREADS * TURNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_has_one_holder_who_does_not_get_it_twice),
        cmocka_unit_test(test_a_holder_that_runs_again_is_waited_for),
        cmocka_unit_test(test_a_stuck_holder_is_waited_for_once),
        cmocka_unit_test(test_threads_take_turns_and_none_goes_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
