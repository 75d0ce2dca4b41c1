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
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_like_a_plain_loop),
        cmocka_unit_test(reads_nothing_beyond_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
