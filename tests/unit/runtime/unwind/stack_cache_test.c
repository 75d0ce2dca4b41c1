// SPDX-License-Identifier: Apache-2.0
// Remembered stacks against the words themselves. A stack here is the words that decide it, laid
// out innermost first from the hook's frame; what it stands for is the number of its contents.
#include "runtime/unwind/stack_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/unwind/unwind_cache.h"
#include "tests/unit/runtime/random.h"

enum { WORDS = 24, STACKS_MAX = 3000, STEPS = 200000, ALWAYS = 1 << 20 };
enum { FRAME_WORD = 0, CALLER_WORD = 1 };

struct stack {
    uint32_t depth;  // words from CALLER_WORD on
    uintptr_t words[WORDS];
};

static struct stack stacks[STACKS_MAX];
static _Alignas(SYS_PAGE_LEAST) uintptr_t memory[WORDS];
static struct walk_check checks_memory[1 + WORDS], *const checks = &checks_memory[1];
static struct stack_cache recall;
static uint64_t seed;

// Inner words are often equal, so that stacks part at every depth; values do not repeat elsewhere.
static void stacks_make(uint32_t count, uint32_t choices) {
    for (uint32_t i = 0; i < count; i++) {
        stacks[i].depth = 2 + (uint32_t)random_below(&seed, WORDS - 2);
        for (uint32_t k = 0; k < WORDS; k++)
            stacks[i].words[k] = 0x555500000000 + k * 4096 + 16 * random_below(&seed, choices);
        stacks[i].words[WORDS - 1] = i;  // no two are equal…
        stacks[i].depth = WORDS - 1;     // …and all are as deep
    }
}

static void stack_enter(const struct stack *stack) {
    memcpy(memory, stack->words, sizeof memory);
}

static struct walk_seen stack_seen(const struct stack *stack, uint32_t value) {
    checks_memory[0] = walk_check_end();
    for (uint32_t i = 0; i < stack->depth; i++) {
        uint32_t word = stack->depth - i;  // outermost first
        checks[i] = (struct walk_check){&memory[word], memory[word]};
    }
    return (struct walk_seen){&memory[FRAME_WORD], memory[CALLER_WORD], checks + stack->depth,
                              stack->depth, value};
}

static void always_in_use(void) {
    if (recall.phase != RECALL_WAITS && recall.phase != RECALL_TIMED_OFF && recall.left > 1) return;
    if (!recall.seen) return;
    recall.phase = RECALL_WORKS;
    recall.left = ALWAYS;
}

static uint32_t guessed_count, digested_count;

// Whether the stack was known. Every other capture is guessed first, or by its digest, as hooks do
// it: what that says is what the whole search says of the others.
static bool capture(uint32_t number) {
    static bool is_guessed;
    stack_enter(&stacks[number]);
    is_guessed = !is_guessed;
    const struct walk_seen *known = is_guessed ? stack_cache_guessed(&recall, memory) : NULL;
    guessed_count += known != NULL;
    if (!known && is_guessed && stack_cache_digests(&recall)) {
        known = stack_cache_digested(&recall, memory);
        digested_count += known != NULL;
    }
    if (known) {
        assert_int_equal(known->value, number + 1);
        return true;
    }
    known = stack_cache_find(&recall, memory, is_guessed && stack_cache_guesses(&recall));
    if (known) assert_int_equal(known->value, number + 1);
    struct walk_seen seen = stack_seen(&stacks[number], number + 1);
    stack_cache_keep(&recall, known ? NULL : &seen);
    always_in_use();
    return known != NULL;
}

static void stack_cache_start(void) {
    assert_true(rule_init());
    memset(&recall, 0, sizeof recall);
    stack_cache_limit(&recall, 1);
    stacks_make(1, 4);
    while (!recall.seen) capture(0);
}

// No trial is on, and none comes soon.
static void no_trial(void) {
    recall.phase = RECALL_WORKS;
    recall.left = ALWAYS;
}

static void test_a_known_stack_is_found_and_no_other_taken_for_it(void **state) {
    (void)state;
    static const uint32_t choices[] = {1, 2, 3, 50};
    for (size_t c = 0; c < sizeof choices / sizeof *choices; c++) {
        stack_cache_start();
        stacks_make(500, choices[c]);
        stack_cache_reset(&recall);
        for (uint32_t i = 0; i < 500; i++) capture(i);
        uint32_t found = 0;
        for (int step = 0; step < STEPS / 4; step++)
            found += capture((uint32_t)random_below(&seed, 500));
        assert_true(found > STEPS / 4 * 9 / 10);
    }
}

static void test_an_order_that_repeats_is_followed(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(300, 2);
    stack_cache_reset(&recall);
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 300; i++) assert_true(capture(i) || round == 0);
    // Places are shared now and then, so not every guess is right.
    guessed_count = 0;
    no_trial();
    for (uint32_t i = 0; i < 300; i++) assert_true(capture(i));
    assert_true(guessed_count > 100);
}

static uint32_t tried_of(uint32_t captures, bool is_random) {
    uint32_t tried = 0;
    for (uint32_t i = 0; i < captures; i++) {
        tried += stack_cache_guesses(&recall);
        capture(is_random ? (uint32_t)random_below(&seed, 300) : i % 300);
    }
    return tried;
}

// Without an order hardly a guess is right; once there is one they are.
static void test_guesses_that_are_wrong_are_given_up(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(300, 2);
    stack_cache_reset(&recall);
    no_trial();
    tried_of(3000, true);
    assert_in_range(tried_of(3000, true), 0, 300);
    tried_of(600, false);
    assert_in_range(tried_of(3000, false), 2700, 3000);
}

// Of captures in no order of stacks that have the same caller.
static uint32_t digested_of(uint32_t captures) {
    digested_count = 0;
    for (uint32_t i = 0; i < 300; i++) stacks[i].words[CALLER_WORD] = stacks[0].words[CALLER_WORD];
    for (uint32_t i = 0; i < captures; i++) capture((uint32_t)random_below(&seed, 300));
    return digested_count;
}

// Of stacks in no order most are found by their inner words, unless these are the same.
static void test_without_an_order_the_inner_words_tell(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(300, 8);
    stack_cache_reset(&recall);
    no_trial();
    digested_of(3000);
    assert_in_range(digested_of(3000), 1300, 1500);  // every other one but where guesses are noted
    stacks_make(300, 1);
    stack_cache_reset(&recall);
    no_trial();
    digested_of(3000);
    assert_int_equal(digested_of(3000), 0);
    assert_false(stack_cache_digests(&recall));
}

// A digest reads the page of the hook's frame only: what lies behind it may be gone by then.
static void test_a_digest_does_not_leave_the_page(void **state) {
    (void)state;
    enum { NEAR = 8, FAR = 8 };
    struct walk_check words[1 + NEAR + FAR] = {walk_check_end()};
    uint8_t *pages = mmap(NULL, (size_t)sys_page_bytes() * 2, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    uintptr_t *frame = (uintptr_t *)(pages + sys_page_bytes()) - 1 - NEAR;
    for (int i = 1; i <= NEAR + FAR; i++)
        words[1 + NEAR + FAR - i] = (struct walk_check){&frame[i], frame[i] = (uintptr_t)i};
    stack_cache_start();
    stack_cache_reset(&recall);
    no_trial();
    assert_null(stack_cache_find(&recall, frame, false));
    struct walk_seen seen = {frame, frame[1], words + 1 + NEAR + FAR, NEAR + FAR, 5};
    stack_cache_keep(&recall, &seen);
    recall.is_doubtful = true;
    assert_int_equal(recall.places[recall.root].digest_count, NEAR);
    recall.left |= 1;                                   // not one that looks at guesses
    assert_null(stack_cache_digested(&recall, frame));  // which is not noted so far
    assert_int_equal(stack_cache_find(&recall, frame, false)->value, 5);
    stack_cache_keep(&recall, NULL);
    recall.left |= 1;
    assert_int_equal(stack_cache_digested(&recall, frame)->value, 5);
    frame[NEAR]++;
    assert_int_equal(mprotect(pages + sys_page_bytes(), (size_t)sys_page_bytes(), PROT_NONE), 0);
    recall.left |= 1;
    assert_null(stack_cache_digested(&recall, frame));
    munmap(pages, (size_t)sys_page_bytes() * 2);
}

// No trial is on, and no capture is left over: only then a guess counts itself.
static void test_a_guess_is_made_between_trials_only(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(2, 3);
    stack_cache_reset(&recall);
    no_trial();
    for (int i = 0; i < 9; i++) capture((uint32_t)i % 2);
    stack_enter(&stacks[1]);
    assert_non_null(stack_cache_guessed(&recall, memory));
    stack_enter(&stacks[0]);
    uint32_t left = recall.left;
    assert_non_null(stack_cache_guessed(&recall, memory));
    assert_int_equal(recall.left, left - 1);
    stack_enter(&stacks[1]);
    recall.left = 0;
    assert_null(stack_cache_guessed(&recall, memory));
    recall.left = left;
    recall.phase = RECALL_TIMED_ON;
    assert_null(stack_cache_guessed(&recall, memory));
    recall.phase = RECALL_WORKS;
    memory[WORDS - 1] += 16;
    assert_null(stack_cache_guessed(&recall, memory));
    memory[WORDS - 1] -= 16;
    assert_non_null(stack_cache_guessed(&recall, memory));
}

static void test_too_many_stacks_begin_anew(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(STACKS_MAX, 3);
    for (int step = 0; step < STEPS; step++) capture((uint32_t)random_below(&seed, STACKS_MAX));
    assert_true(recall.node_count <= RECALL_NODES);
}

// Rules were forgotten: what was remembered with them holds no longer.
static void test_forgotten_rules_forget_all(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(10, 3);
    for (uint32_t i = 0; i < 10; i++) capture(i);
    assert_true(capture(3));
    rule_forget_all();
    assert_false(capture(3));
    assert_true(capture(3));
}

// What cannot be verified is not remembered, and nothing is said to follow it.
static void test_a_stack_without_a_frame_is_passed_over(void **state) {
    (void)state;
    stack_cache_start();
    stacks_make(3, 3);
    capture(0);
    stack_enter(&stacks[1]);
    assert_null(stack_cache_find(&recall, memory, false));
    struct walk_seen nothing = {.value = 7};
    stack_cache_keep(&recall, &nothing);
    assert_false(capture(1));
    assert_true(capture(0));
}

int main(void) {
    seed = 11;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_known_stack_is_found_and_no_other_taken_for_it),
        cmocka_unit_test(test_an_order_that_repeats_is_followed),
        cmocka_unit_test(test_guesses_that_are_wrong_are_given_up),
        cmocka_unit_test(test_without_an_order_the_inner_words_tell),
        cmocka_unit_test(test_a_digest_does_not_leave_the_page),
        cmocka_unit_test(test_a_guess_is_made_between_trials_only),
        cmocka_unit_test(test_too_many_stacks_begin_anew),
        cmocka_unit_test(test_forgotten_rules_forget_all),
        cmocka_unit_test(test_a_stack_without_a_frame_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
