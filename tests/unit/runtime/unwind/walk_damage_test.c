// SPDX-License-Identifier: Apache-2.0
// Stacks full of garbage, between unreadable pages: a walk ends, says that it was cut, and reads
// nothing that is not there. A wrong read ends this process.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "format/format.h"
#include "runtime/sys/object.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/unwind_cache.h"
#include "runtime/unwind/walk.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/code.h"

enum { STACK_PAGES = 16, STACK_BYTES = STACK_PAGES * SYS_PAGE_LEAST, WORDS = STACK_BYTES / 8 };
enum { ROUNDS = 300000, WALKS = 4, LIMIT = 300, FORMS = 14, ODD_VALUES = 16 };

CODE(code_end, ".cfi_undefined 16");
CODE(code_small, ".cfi_def_cfa_offset 16");
CODE(code_large, ".cfi_def_cfa_offset 4096");
CODE(code_huge, ".cfi_def_cfa_offset 200000");
CODE(code_saves, ".cfi_def_cfa_offset 32\n .cfi_offset 6, -16");
CODE(code_saves_far, ".cfi_def_cfa_offset 32\n .cfi_offset 6, -4000");
CODE(code_frame, ".cfi_def_cfa 6, 16\n .cfi_offset 6, -16");
CODE(code_frame_keeps, ".cfi_def_cfa 6, 32");
CODE(code_slow, ".cfi_escape 0x0f, 3, 0x77, 0xc0, 0");
// A realigned stack: CFA = word before the frame pointer's place, frame pointer where it points.
CODE(code_realigned, ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n .cfi_escape 0x10, 6, 2, 0x76, 0");
CODE(code_signal, ".cfi_signal_frame\n .cfi_escape 0x0f, 3, 0x77, 0x10, 0x06\n"
                  ".cfi_escape 0x10, 16, 2, 0x77, 0x18\n .cfi_escape 0x10, 6, 2, 0x77, 0x20");
CODE(code_return_anywhere, ".cfi_escape 0x10, 16, 3, 0x77, 8, 6");
// The frame pointer is saved where the frame pointer points, and that may be anywhere.
CODE(code_slot_anywhere, ".cfi_def_cfa_offset 16\n .cfi_escape 0x10, 6, 2, 0x76, 0");
CODE(code_other, ".cfi_def_cfa 3, 16");

static const uint8_t *const forms[FORMS] = {
    code_end,       code_slot_anywhere, code_small,           code_large,       code_huge,
    code_saves,     code_saves_far,     code_frame,           code_frame_keeps, code_slow,
    code_realigned, code_signal,        code_return_anywhere, code_other,
};

static uint64_t seed;
static uintptr_t *stack;  // unreadable pages before and after

static uintptr_t *stack_map(void) {
    uint8_t *pages = mmap(NULL, STACK_BYTES + 2 * sys_page_bytes(), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    mprotect(pages + sys_page_bytes(), STACK_BYTES, PROT_READ | PROT_WRITE);
    return (uintptr_t *)(pages + sys_page_bytes());
}

static uintptr_t pc_pick(void) {
    return (uintptr_t)forms[random_below(&seed, FORMS)] + 1 + random_below(&seed, 2);
}

// What can stand on a damaged stack; addresses cluster at borders.
static uintptr_t garbage_pick(void) {
    const uintptr_t low = (uintptr_t)stack, high = low + STACK_BYTES;
    const uintptr_t odd[ODD_VALUES] = {
        0,
        1,
        8,
        4095,
        4096,
        0x7ffffffff000,
        (uintptr_t)1 << 47,
        0xffff800000000000,
        UINTPTR_MAX,
        UINTPTR_MAX - 7,
        UINTPTR_MAX - 8,
        UINTPTR_MAX - 15,
        low - 8,
        high - 8,
        high,
        high - 16,
    };
    uint64_t dice = random_below(&seed, 100);
    if (dice < 40) return pc_pick();
    if (dice < 75) return low + 8 * random_below(&seed, WORDS + 4);
    if (dice < 80) return low + random_below(&seed, STACK_BYTES);
    if (dice < 95) return odd[random_below(&seed, ODD_VALUES)];
    return random_below(&seed, 1000);
}

static void check_walk(struct walk_trace *trace, const struct walk_start *start) {
    struct walk_result result = walk_stack(trace, start);
    assert_true(trace->count > 0 && trace->count <= LIMIT);
    assert_true(result.keep <= trace->count);
    assert_int_equal(trace->frames[trace->count - 1].pc, start->pc);
    for (uint32_t i = 1; i < trace->count; i++) assert_true(trace->frames[i].pc >= 16);
}

static struct walk_start start_pick(uintptr_t *slot) {
    uint64_t place =
        random_chance(&seed, 30) ? WORDS - 1 - random_below(&seed, 40) : random_below(&seed, WORDS);
    return (struct walk_start){pc_pick(), (uintptr_t)(stack + place), slot};
}

// Changes some words from `from` on.
static void words_change(uint64_t from) {
    for (int i = 0; i < 8; i++) {
        uint64_t at = from + random_below(&seed, 16);
        if (at < WORDS) stack[at] = garbage_pick();
    }
}

// The same stack is walked several times, with some words changed in between.
static void test_garbage(void **state) {
    (void)state;
    struct walk_trace trace;
    uintptr_t slot;
    uint64_t cut = 0, deepest = 0;
    seed = 1;
    assert_true(walk_trace_init(&trace, LIMIT));
    for (size_t i = 0; i < WORDS; i++) stack[i] = garbage_pick();
    const unsigned rounds = getenv("CAIRN_LONG") ? ROUNDS : ROUNDS / 2;
    for (unsigned round = 0; round < rounds; round++) {
        slot = garbage_pick();
        struct walk_start start = start_pick(&slot);
        if (random_chance(&seed, 10)) walk_trace_reset(&trace);
        for (int walk = 0; walk < WALKS; walk++) {
            check_walk(&trace, &start);
            cut += trace.frames[0].pc < CAIRN_CUT_LIMIT;
            if (trace.count > deepest) deepest = trace.count;
            words_change((start.stack - (uintptr_t)stack) / 8);
        }
    }
    assert_true(cut > rounds / 4 && deepest > 10);
}

// A chain of frame pointers that leads to a page that cannot be read.
static void test_frame_pointers_into_nothing(void **state) {
    (void)state;
    struct walk_trace trace;
    assert_true(walk_trace_init(&trace, LIMIT));
    const uintptr_t ends[] = {(uintptr_t)(stack + WORDS),
                              (uintptr_t)(stack + WORDS) - 8,
                              0,
                              8,
                              UINTPTR_MAX - 7,
                              UINTPTR_MAX - 15,
                              (uintptr_t)1 << 60,
                              (uintptr_t)stack};
    for (size_t end = 0; end < sizeof ends / sizeof ends[0]; end++) {
        for (int depth = 1; depth < 20; depth++) {
            uintptr_t slot = (uintptr_t)(stack + 4);
            for (int i = 0; i < depth; i++) {
                uintptr_t *frame = stack + 4 + 8 * i;
                frame[0] = i + 1 < depth ? (uintptr_t)(frame + 8) : ends[end];
                frame[1] = (uintptr_t)code_frame + 1;
            }
            struct walk_start start = {(uintptr_t)code_frame + 1, (uintptr_t)(stack + 2), &slot};
            check_walk(&trace, &start);
            assert_int_equal(trace.frames[0].pc, CAIRN_CUT_BAD_STACK);
            assert_int_equal(trace.count, depth + 2);
        }
    }
}

// A frame says that the frame pointer is saved at the very end of the address space.
static void test_a_slot_at_the_end_of_memory(void **state) {
    (void)state;
    struct walk_trace trace;
    assert_true(walk_trace_init(&trace, LIMIT));
    for (uintptr_t bad = UINTPTR_MAX; bad > UINTPTR_MAX - 32; bad--) {
        uintptr_t slot = bad;
        memset(stack, 0, STACK_BYTES);
        stack[1] = (uintptr_t)code_frame + 1;
        // An address taken from the slot's word: the slot of the next frame is `bad` itself.
        struct walk_start start = {(uintptr_t)code_slot_anywhere + 1, (uintptr_t)stack, &slot};
        check_walk(&trace, &start);
        assert_int_equal(trace.frames[0].pc, CAIRN_CUT_BAD_STACK);
    }
}

// Two stacks close to each other, as coroutines have them. The lower one's walk runs off its end;
// what was known of the upper one does not make the page between readable.
static void test_a_neighbour_above(void **state) {
    (void)state;
    struct walk_trace trace;
    uintptr_t slot = 0;
    assert_true(walk_trace_init(&trace, LIMIT));
    uintptr_t *gap = stack + WORDS / 2;
    uintptr_t *above = gap + sys_page_bytes() / 8;
    memset(stack, 0, STACK_BYTES);
    mprotect(gap, sys_page_bytes(), PROT_NONE);
    above[1] = (uintptr_t)code_end + 1;
    struct walk_start start = {(uintptr_t)code_small + 1, (uintptr_t)above, &slot};
    check_walk(&trace, &start);
    assert_int_equal(trace.count, 2);
    start = (struct walk_start){(uintptr_t)code_saves + 1, (uintptr_t)(gap - 2), &slot};
    check_walk(&trace, &start);
    assert_int_equal(trace.count, 2);
    assert_int_equal(trace.frames[0].pc, CAIRN_CUT_BAD_STACK);
    mprotect(gap, sys_page_bytes(), PROT_READ | PROT_WRITE);
}

static int setup(void **state) {
    (void)state;
    object_init();
    stack = stack_map();
    return rule_init() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_frame_pointers_into_nothing),
        cmocka_unit_test(test_a_slot_at_the_end_of_memory),
        cmocka_unit_test(test_a_neighbour_above),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
