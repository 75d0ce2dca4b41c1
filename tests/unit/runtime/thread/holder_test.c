// SPDX-License-Identifier: Apache-2.0
// A model of a thread whose handlers jump: stacks of words that calls, returns, interruptions and
// switches write as programs do, and leave as they were where nothing writes. An event that was
// left by a jump is gone; one that was interrupted, or waits on the stack of a coroutine, is not.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/sys/object.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/holder.h"
#include "runtime/unwind/unwind_cache.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/code.h"

enum { STACKS = 6, STACK_WORDS = 2560, SIGNAL_STACK = 0, DEEPEST = 40, JUMPS = 1000000 };
enum { HOOK_WORDS = 8, GATE_WORDS = 24, RED_ZONE_WORDS = 16, ROOM_WORDS = 128 };

CODE(code_outermost, ".cfi_undefined 16");
CODE(code_small, ".cfi_def_cfa_offset 16");
CODE(code_usual, ".cfi_def_cfa_offset 48\n .cfi_offset 6, -16");
CODE(code_large, ".cfi_def_cfa_offset 128");
CODE(code_frame, ".cfi_def_cfa 6, 16\n .cfi_offset 6, -16");
CODE(code_hook, ".cfi_def_cfa_offset 64");
// The stack pointer, then the return address and the frame pointer, as the kernel leaves them.
CODE(code_signal, ".cfi_signal_frame\n .cfi_escape 0x0f, 3, 0x77, 0x10, 0x06\n"
                  ".cfi_escape 0x10, 16, 2, 0x77, 0x18\n .cfi_escape 0x10, 6, 2, 0x77, 0x20");

enum form { SMALL, USUAL, LARGE, FRAME, FORMS };
static const uint8_t *const codes[FORMS] = {code_small, code_usual, code_large, code_frame};
static const unsigned words_below[FORMS] = {1, 4, 15, 0};  // what it saves

struct registers {
    uintptr_t *stack, frame, pc;
};

// A stack with the states of its callers, outermost first.
struct model_stack {
    uintptr_t *low, *high;
    struct registers saved[DEEPEST + 1], now;
    unsigned depth, least;  // least: of the handler that runs on it
};

static uint64_t seed;
static uintptr_t *memory;
static struct model_stack stacks[STACKS];
static struct model_stack *current;
static struct holder_look held;  // the event that holds the gate
static uint64_t checks[HOLDER_GONE + 1];

// What code leaves on a stack: numbers, addresses of stacks and of code.
static uintptr_t rubbish(void) {
    switch (random_below(&seed, 6)) {
    case 0:
        return (uintptr_t)codes[random_below(&seed, FORMS)] + 1;
    case 1:
        return (uintptr_t)(memory + random_below(&seed, STACKS * STACK_WORDS));
    case 2:
        return (uintptr_t)code_hook + 1;
    case 3:
        return getauxval(AT_BASE) + random_below(&seed, 1u << 17);
    case 4:
        return random_next(&seed);
    default:
        return random_below(&seed, 100);
    }
}

static void push(uintptr_t word) {
    *--current->now.stack = word;
}

// Of the words of a frame some are written.
static void push_some(uint64_t count) {
    for (; count; count--) {
        current->now.stack--;
        if (random_chance(&seed, 30)) *current->now.stack = rubbish();
    }
}

static void begin(struct model_stack *stack) {
    stack->depth = stack->least = 0;
    stack->now = (struct registers){stack->high, 0, (uintptr_t)code_outermost + 1};
}

static void call(enum form form) {
    struct registers *now = &current->now;
    if (current->depth == DEEPEST || now->stack - current->low < ROOM_WORDS) return;
    current->saved[current->depth++] = *now;
    push(now->pc);
    if (form == USUAL || form == FRAME) push(now->frame);
    if (form == FRAME) now->frame = (uintptr_t)now->stack;
    push_some(form == FRAME ? random_below(&seed, 12) : words_below[form]);
    now->pc = (uintptr_t)codes[form] + 1;
}

static void leave(unsigned depth) {
    current->now = current->saved[depth];
    current->depth = depth;
}

static void wander(void) {
    for (uint64_t steps = random_below(&seed, 12); steps; steps--) {
        if (random_chance(&seed, 60))
            call(random_below(&seed, FORMS));
        else if (current->depth > current->least)
            leave(current->depth - 1);
    }
}

static struct holder_look event(void) {
    uintptr_t *frame = current->now.stack - 2;
    frame[1] = current->now.pc;
    frame[0] = current->now.frame;
    return (struct holder_look){.frame = (uintptr_t)frame, .return_address = frame[1]};
}

static void check(enum holder_nesting expected) {
    struct holder_look look = held;
    look.here = event().frame;
    uintptr_t *here = (uintptr_t *)look.here;
    for (uintptr_t *word = here - GATE_WORDS; word < here; word++) *word = rubbish();
    look.live = (uintptr_t)(here - GATE_WORDS);
    look.code_start = (uintptr_t)code_hook;
    look.code_end = (uintptr_t)code_hook + CODE_BYTES;
    enum holder_nesting found = holder_look(&look);
    checks[found]++;
    if (found != expected)
        fail_msg("%d for %d: on stack %d, %td words from the event that holds the gate", found,
                 expected, (int)(current - stacks), here - (uintptr_t *)held.frame);
}

// What was interrupted in the middle of an event, to go on with.
struct interrupted {
    struct model_stack *stack;
    struct registers now;
    unsigned depth, least;
};

// A handler begins, on the thread's own stack or on that for signals.
static struct interrupted interrupt(bool is_on_signal_stack) {
    struct interrupted before = {current, current->now, current->depth, current->least};
    held = event();
    struct registers hook = {current->now.stack - HOOK_WORDS, current->now.frame,
                             (uintptr_t)code_hook + 1};
    uint64_t inner_words = random_below(&seed, 6) + RED_ZONE_WORDS;
    current->now = hook;
    if (is_on_signal_stack) {
        current = &stacks[SIGNAL_STACK];
        begin(current);
        inner_words = 0;
    }
    current->now.stack -= inner_words;
    push(hook.frame);
    push(hook.pc);
    push((uintptr_t)hook.stack);
    push_some(2);
    current->now.pc = (uintptr_t)code_signal + 1;
    call(SMALL);
    current->least = current->depth;
    return before;
}

static void go_back(const struct interrupted *before) {
    current = before->stack;
    current->now = before->now;
    current->depth = before->depth;
    current->least = before->least;
}

static bool has_room(void) {
    return current->now.stack - current->low >= 2 * ROOM_WORDS && current->depth < DEEPEST - 1;
}

static void handler_returns(bool has_own_stack) {
    struct interrupted before = interrupt(has_own_stack);
    wander();
    check(HOLDER_HANDLER);
    go_back(&before);
}

static void handler_jumps(bool has_own_stack) {
    struct interrupted before = interrupt(has_own_stack);
    wander();
    if (random_chance(&seed, 20)) check(HOLDER_HANDLER);
    go_back(&before);
    unsigned depth = current->depth;
    if (depth) leave((unsigned)random_below(&seed, depth));
    wander();
    check(HOLDER_GONE);
}

// To a coroutine that is begun or goes on, not the one that waits.
static void change_stack(const struct model_stack *waiting) {
    struct model_stack *other = current;
    while (other == current || other == waiting)
        other = &stacks[SIGNAL_STACK + 1 + random_below(&seed, STACKS - 1)];
    current = other;
    if (random_chance(&seed, 10)) begin(current);
}

// A handler switches to others while the event waits.
static void handler_switches(void) {
    struct interrupted before = interrupt(false);
    for (uint64_t turns = 1 + random_below(&seed, 4); turns; turns--) {
        change_stack(before.stack);
        wander();
        check(HOLDER_HANDLER);
    }
    go_back(&before);
}

// The real function calls another hook.
static void real_function_calls(void) {
    struct model_stack before = *current;
    held = event();
    call(SMALL);
    current->now.stack = before.now.stack - HOOK_WORDS;
    current->now.pc = (uintptr_t)code_hook + 1;
    call(USUAL);
    check(HOLDER_CALL);
    *current = before;
}

static void test_jumps(void **state) {
    (void)state;
    const bool is_long = getenv("CAIRN_LONG");
    current = &stacks[SIGNAL_STACK + 1];
    for (int jumps = 0; jumps < (is_long ? JUMPS : JUMPS / 20);) {
        wander();
        if (!has_room()) {
            leave(current->depth / 2);
            continue;
        }
        switch (random_below(&seed, 8)) {
        case 0:
            handler_returns(random_chance(&seed, 50));
            break;
        case 1:
            handler_switches();
            break;
        case 2:
            real_function_calls();
            break;
        case 3:
            change_stack(NULL);
            break;
        default:
            handler_jumps(random_chance(&seed, 50));
            jumps++;
        }
    }
    print_message("%lu calls, %lu in handlers or waiting, %lu left\n", checks[HOLDER_CALL],
                  checks[HOLDER_HANDLER], checks[HOLDER_GONE]);
}

static int setup(void **state) {
    (void)state;
    object_init();
    memory = mmap(NULL, STACKS * STACK_WORDS * sizeof *memory, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || !rule_init()) return -1;
    for (int i = 0; i < STACKS; i++) {
        stacks[i].low = memory + (ptrdiff_t)i * STACK_WORDS;
        stacks[i].high = stacks[i].low + STACK_WORDS;
        begin(&stacks[i]);
    }
    stack_t own = {.ss_sp = stacks[SIGNAL_STACK].low, .ss_size = STACK_WORDS * sizeof *memory};
    if (sigaltstack(&own, NULL) != 0) return -1;
    const uint8_t *const all[] = {code_outermost, code_small, code_usual, code_large,
                                  code_frame,     code_hook,  code_signal};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) rule_find_slow((uintptr_t)all[i] + 1);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jumps)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
