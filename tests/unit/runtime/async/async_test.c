// SPDX-License-Identifier: Apache-2.0
// Chains of coroutines that wait: where they go in a stack, and numbers that a program makes up.
// (That they are the true ones of real coroutines, tests/e2e/awaiting.py shows.)
#include "runtime/async/async.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LIMIT = 16, DEPTH = 100 };

// Return addresses; a function of each is from 0xf below it to 0x10 above.
enum { SCHEDULER = 0x401000, LEAF = 0x402000, MIDDLE = 0x403000, OUTER = 0x404000 };

static struct async_place place_at(uintptr_t pc) {
    const uintptr_t around = 0x10;
    return (struct async_place){pc, pc - around, pc + around};
}

static uint32_t awaited(uint32_t outer, uintptr_t pc) {
    const struct async_place place = place_at(pc);
    uint32_t number = async_awaited(outer, &place);
    assert_int_not_equal(number, 0);
    assert_int_equal(async_seek(outer, pc), number);
    return number;
}

// Outermost first, a stack that grows down.
static const struct frame frames[] = {{.stack = 0x9000, .pc = SCHEDULER},
                                      {.stack = 0x8000, .pc = LEAF}};

static void check_stack(struct managed_stack stack, const uintptr_t *wanted, uint32_t count) {
    assert_int_equal(stack.count, count);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(stack.frames[i].pc, wanted[i]);
}

static void test_chain(void **state) {
    (void)state;
    struct async_thread *thread = async_thread_make(LIMIT);
    const uintptr_t whole[] = {SCHEDULER, OUTER, MIDDLE, LEAF}, plain[] = {SCHEDULER, LEAF};
    assert_non_null(thread);
    check_stack(async_weave(thread, (struct managed_native){frames, 2}), plain, 2);
    async_resumed(thread, awaited(awaited(0, OUTER), MIDDLE), frames[1].stack + 8);
    check_stack(async_weave(thread, (struct managed_native){frames, 2}), whole, 4);
    async_suspended(thread);
    check_stack(async_weave(thread, (struct managed_native){frames, 2}), plain, 2);
}

// Where an awaiting function is itself on the stack, it is not there twice.
static void test_on_the_stack(void **state) {
    (void)state;
    const struct frame resumed[] = {{.stack = 0x9000, .pc = SCHEDULER},
                                    {.stack = 0x8800, .pc = MIDDLE},
                                    {.stack = 0x8000, .pc = LEAF}};
    const uintptr_t wanted[] = {SCHEDULER, OUTER, MIDDLE, LEAF};
    struct async_thread *thread = async_thread_make(LIMIT);
    assert_non_null(thread);
    async_resumed(thread, awaited(awaited(0, OUTER), MIDDLE), resumed[2].stack + 8);
    check_stack(async_weave(thread, (struct managed_native){resumed, 3}), wanted, 4);
}

static void test_made_up_numbers(void **state) {
    (void)state;
    const uintptr_t plain[] = {SCHEDULER, LEAF};
    const uint32_t numbers[] = {0, awaited(0, OUTER) + 1000, 1 << 16, (1 << 16) + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct async_thread *thread = async_thread_make(LIMIT);
        assert_non_null(thread);
        async_resumed(thread, numbers[i], frames[1].stack);
        check_stack(async_weave(thread, (struct managed_native){frames, 2}), plain, 2);
    }
}

// More coroutines within each other than are known have no chain; and what was never suspended is
// forgotten where something further out is resumed.
static void test_depth(void **state) {
    (void)state;
    struct async_thread *thread = async_thread_make(LIMIT);
    const uint32_t chain = awaited(0, OUTER);
    const uintptr_t whole[] = {SCHEDULER, OUTER, LEAF};
    assert_non_null(thread);
    async_suspended(thread);  // nothing was resumed
    for (uintptr_t i = 0; i < DEPTH; i++) async_resumed(thread, chain, 0x7000 - i);
    for (uintptr_t i = 0; i < DEPTH; i++) async_suspended(thread);
    for (uintptr_t i = 0; i < DEPTH / 2; i++) async_resumed(thread, chain, 0x7000 - i);
    async_resumed(thread, chain, frames[1].stack);
    check_stack(async_weave(thread, (struct managed_native){frames, 2}), whole, 3);
    async_suspended(thread);
    check_stack(async_weave(thread, (struct managed_native){frames, 2}),
                (const uintptr_t[]){SCHEDULER, LEAF}, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_on_the_stack),
        cmocka_unit_test(test_made_up_numbers),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
