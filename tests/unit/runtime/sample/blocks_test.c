// SPDX-License-Identifier: Apache-2.0
// The table against a plain list, its bounds, and threads that insert, take and thin at once.
#include "runtime/sample/blocks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/sample/prng.h"

enum { MAX_SAMPLES = 4096, BLOCKS = 4096, THREADS = 4, ROUNDS = 20000 };

static int start(void **state) {
    (void)state;
    return blocks_init(MAX_SAMPLES) ? 0 : -1;
}

static void *address(uint64_t number) {
    return (void *)(uintptr_t)(0x7f0000000010u + number * 48);
}

static void test_against_a_list(void **state) {
    (void)state;
    static bool is_live[BLOCKS];
    struct prng chance;
    uint64_t live = 0;
    prng_start(&chance, 5, 5);
    for (int i = 0; i < 400000; i++) {
        uint64_t number = prng_next(&chance) % BLOCKS;
        struct sampled sampled = {.size_bytes = number, .rate_bytes = 7, .cell = (uint32_t)i};
        if (is_live[number]) {
            assert_true(blocks_may_have(address(number)));
            assert_true(blocks_take(address(number), &sampled));
            assert_int_equal(sampled.size_bytes, number);
            live--;
        } else {
            assert_false(blocks_take(address(number), &sampled));
            assert_true(blocks_insert(address(number), &sampled));
            live++;
        }
        is_live[number] = !is_live[number];
        assert_int_equal(blocks_count(), live);
    }
    for (uint64_t number = 0; number < BLOCKS; number++) {
        struct sampled sampled;
        assert_int_equal(blocks_take(address(number), &sampled), is_live[number]);
    }
    assert_int_equal(blocks_count(), 0);
}

static void test_filter(void **state) {
    (void)state;
    struct sampled sampled = {.rate_bytes = 1};
    uint64_t passed = 0;
    for (uint64_t i = 0; i < 1000; i++) assert_true(blocks_insert(address(i), &sampled));
    for (uint64_t i = 1000; i < 101000; i++) passed += blocks_may_have(address(i));
    assert_in_range(passed, 1, 1900);  // 1,000 of 65,536 counters: 1,526 by chance
    for (uint64_t i = 0; i < 1000; i++) assert_true(blocks_take(address(i), &sampled));
    for (uint64_t i = 0; i < 1000; i++) assert_false(blocks_may_have(address(i)));
}

// Entering and taking it, or others of its counter, does not end the suspicion.
static void test_suspect(void **state) {
    (void)state;
    const void *block = address(123456789);
    struct sampled sampled = {.rate_bytes = 1};
    assert_false(blocks_may_have(block));
    blocks_suspect(block);
    assert_true(blocks_may_have(block));
    assert_false(blocks_take(block, &sampled));
    assert_true(blocks_insert(block, &sampled) && blocks_take(block, &sampled));
    assert_true(blocks_may_have(block));
}

static void test_full(void **state) {
    (void)state;
    struct sampled sampled = {.rate_bytes = 1};
    uint64_t entered = 0;
    while (blocks_insert(address(entered), &sampled)) entered++;
    assert_true(entered >= MAX_SAMPLES && entered <= blocks_capacity());
    for (uint64_t i = 0; i < entered; i++) assert_true(blocks_take(address(i), &sampled));
    assert_int_equal(blocks_count(), 0);
}

static enum blocks_fate drop_odd(void *context, const void *block, struct sampled *sampled) {
    uint64_t *kept = context;
    assert_ptr_equal(block, address(sampled->size_bytes));
    if (sampled->size_bytes % 2) return BLOCKS_DROP;
    sampled->rate_bytes = 9;
    ++*kept;
    return BLOCKS_KEEP;
}

static void test_each(void **state) {
    (void)state;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct sampled sampled = {.size_bytes = i, .rate_bytes = 1};
        assert_true(blocks_insert(address(i), &sampled));
    }
    blocks_each(drop_odd, &kept);
    assert_int_equal(kept, 500);
    for (uint64_t i = 0; i < 1000; i++) {
        struct sampled sampled;
        assert_int_equal(blocks_take(address(i), &sampled), i % 2 == 0);
        if (i % 2 == 0) assert_int_equal(sampled.rate_bytes, 9);
    }
}

static uint64_t dropped[THREADS];
static volatile bool is_over;

static enum blocks_fate drop_some(void *context, const void *block, struct sampled *sampled) {
    struct prng *chance = context;
    (void)block;
    if (prng_next(chance) % 4) return BLOCKS_KEEP;
    __atomic_fetch_add(&dropped[sampled->cell], 1, __ATOMIC_RELAXED);
    return BLOCKS_DROP;
}

static void *thin(void *unused) {
    struct prng chance;
    prng_start(&chance, 11, 11);
    while (!is_over) blocks_each(drop_some, &chance);
    return unused;
}

// Each thread has blocks of its own; what it does not find again was dropped by thin().
static void *work(void *context) {
    uint64_t self = (uint64_t)(uintptr_t)context, missing = 0, wrong = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        void *block = address(self * BLOCKS + i % 64);
        struct sampled sampled = {.size_bytes = i, .rate_bytes = 1, .cell = (uint32_t)self};
        if (!blocks_insert(block, &sampled)) return (void *)1;
        memset(&sampled, 0, sizeof sampled);
        if (!blocks_take(block, &sampled))
            missing++;
        else if (sampled.size_bytes != i || sampled.cell != self)
            wrong++;
    }
    bool is_right = !wrong && missing == __atomic_load_n(&dropped[self], __ATOMIC_RELAXED);
    return (void *)(uintptr_t)!is_right;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS], thinner;
    pthread_create(&thinner, NULL, thin, NULL);
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        assert_null(problem);
    }
    is_over = true;
    pthread_join(thinner, NULL);
    assert_int_equal(blocks_count(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_list), cmocka_unit_test(test_filter),
        cmocka_unit_test(test_suspect),        cmocka_unit_test(test_full),
        cmocka_unit_test(test_each),           cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
