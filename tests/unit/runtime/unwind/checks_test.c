// SPDX-License-Identifier: Apache-2.0
// checks_verify, which finds the end of its list by a word that always differs, against a plain
// loop that counts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/unwind/walk.h"
#include "tests/unit/runtime/random.h"

enum { WORDS = 40, STEPS = 100000 };

static uintptr_t memory[WORDS];
static struct walk_check list[1 + WORDS], *const checks = &list[1];

static uint32_t count_plainly(uint32_t count) {
    while (count > 0 && memory[count - 1] == checks[count - 1].value) count--;
    return count;
}

// Of a stack with so many words, as hooks ask.
static uint32_t differs_in_two_steps(uint32_t count) {
    static const uintptr_t frame[2] = {0, 4711};
    const struct walk_seen seen = {frame, frame[1], checks + count, count, 1};
    const struct walk_seen elsewhere = {frame, frame[1] + 1, checks + count, count, 1};
    const struct walk_check *near;
    assert_false(walk_is_same(&elsewhere, frame, &near));
    assert_int_equal(walk_differs_near(&elsewhere, near), WALK_ELSEWHERE);
    if (walk_is_same(&seen, frame, &near)) return WALK_SAME;
    return walk_differs_near(&seen, near);
}

static void is_like_a_plain_loop(void **state) {
    uint64_t seed = 1;
    (void)state;
    checks[-1] = walk_check_end();
    for (uint32_t i = 0; i < WORDS; i++) checks[i] = (struct walk_check){&memory[i], 0};
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t changes = (uint32_t)random_below(&seed, 3);
        for (uint32_t i = 0; i < WORDS; i++) memory[i] = checks[i].value = random_below(&seed, 4);
        for (uint32_t i = 0; i < changes; i++) memory[random_below(&seed, WORDS)]++;
        uint32_t count = (uint32_t)random_below(&seed, WORDS + 1);
        assert_int_equal(checks_verify(checks, count), count_plainly(count));
        assert_int_equal(differs_in_two_steps(count), count_plainly(count));
    }
}

// Further out than a word that differs there may be no stack.
static void reads_nothing_beyond_a_difference(void **state) {
    (void)state;
    checks[-1] = walk_check_end();
    for (uint32_t differing = 0; differing < WORDS; differing++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            memory[i] = i;
            checks[i] = (struct walk_check){i < differing ? NULL : &memory[i], i};
        }
        memory[differing]++;
        assert_int_equal(checks_verify(checks, WORDS), differing + 1);
        assert_int_equal(differs_in_two_steps(WORDS), differing + 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_like_a_plain_loop),
        cmocka_unit_test(reads_nothing_beyond_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
