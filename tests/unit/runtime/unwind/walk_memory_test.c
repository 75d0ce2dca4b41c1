// SPDX-License-Identifier: Apache-2.0
// Stacks made by hand and changed a little between walks, so that the walk's memory of the last
// trace is right in parts and stale words look as if they were still in use. The frames are known,
// since they were laid out from a list.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/sys/object.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/unwind_cache.h"
#include "runtime/unwind/walk.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/code.h"

enum { FRAMES_MAX = 60, ROUNDS = 400000, STACK_WORDS = 1 << 14, LIMIT = 200, FRAME_PAIR = 16 };

CODE(code_end, ".cfi_undefined 16");
CODE(code_small, ".cfi_def_cfa_offset 16");
CODE(code_large, ".cfi_def_cfa_offset 64");
CODE(code_saves, ".cfi_def_cfa_offset 32\n .cfi_offset 6, -16");
CODE(code_frame, ".cfi_def_cfa 6, 16\n .cfi_offset 6, -16");
CODE(code_frame_keeps, ".cfi_def_cfa 6, 32");
CODE(code_slow, ".cfi_escape 0x0f, 3, 0x77, 0xc0, 0");  // an expression: stack pointer + 64

enum form { END, SMALL, LARGE, SAVES, FRAME, FRAME_KEEPS, SLOW, FORMS };

static const struct {
    const uint8_t *code;
    uintptr_t bytes;  // from the stack pointer to the CFA
} forms[] = {
    [END] = {code_end, 0},      [SMALL] = {code_small, 16}, [LARGE] = {code_large, 64},
    [SAVES] = {code_saves, 32}, [FRAME] = {code_frame, 16}, [FRAME_KEEPS] = {code_frame_keeps, 32},
    [SLOW] = {code_slow, 64},
};

// A frame as the list has it, outermost first.
struct wanted {
    enum form form;
    uint32_t variant;  // which nop
    uint32_t extra;    // bytes that it took beyond its fixed part, where the form allows it
};

static uint64_t seed;
static uintptr_t *stack;
static struct wanted list[FRAMES_MAX];
static uint32_t list_count;
static struct walk_start start;

static uintptr_t pc_of(const struct wanted *wanted) {
    return (uintptr_t)forms[wanted->form].code + 1 + wanted->variant;
}

static bool can_grow(enum form form) {
    return form == FRAME || form == FRAME_KEEPS;
}

// `is_free`: nobody outside needs the frame pointer.
static struct wanted wanted_pick(bool is_free) {
    struct wanted wanted = {.variant = (uint32_t)random_below(&seed, 3)};
    do wanted.form = (enum form)(1 + random_below(&seed, FORMS - 1));
    while ((wanted.form == FRAME_KEEPS && !is_free) ||
           (wanted.form == SLOW && !random_chance(&seed, 20)));
    if (can_grow(wanted.form)) wanted.extra = 16 * (uint32_t)random_below(&seed, 8);
    return wanted;
}

// Lays the list out below the end of the stack memory. The frame pointer that a frame must see is
// known going inwards: those that set up one say which, those that save it free it again.
static void stack_build(void) {
    uintptr_t sp = (uintptr_t)(stack + STACK_WORDS) - 256, frame_pointer = 0;
    for (uint32_t i = 1; i < list_count; i++) {
        const struct wanted *wanted = &list[i];
        uintptr_t cfa = sp;
        sp = cfa - forms[wanted->form].bytes - wanted->extra;
        *(uintptr_t *)(cfa - 8) = pc_of(&list[i - 1]);
        if (wanted->form == FRAME || wanted->form == SAVES)
            *(uintptr_t *)(cfa - FRAME_PAIR) = frame_pointer;
        if (wanted->form == SAVES) frame_pointer = random_next(&seed);
        if (wanted->form == FRAME) frame_pointer = cfa - FRAME_PAIR;
        if (wanted->form == FRAME_KEEPS) frame_pointer = cfa - forms[FRAME_KEEPS].bytes;
    }
    uintptr_t *slot = (uintptr_t *)(sp - 16);
    *slot = frame_pointer;
    start = (struct walk_start){pc_of(&list[list_count - 1]), sp, slot};
}

static bool is_pointer_free(uint32_t count) {
    for (uint32_t i = count; i-- > 1;) {
        if (list[i].form == SAVES) return true;
        if (can_grow(list[i].form)) return false;
    }
    return true;
}

static void list_grow(uint32_t from) {
    uint32_t count = from + 1 + (uint32_t)random_below(&seed, 10);
    if (count > FRAMES_MAX) count = FRAMES_MAX;
    for (uint32_t i = from; i < count; i++) list[i] = wanted_pick(is_pointer_free(i));
    list_count = count;
}

// Moves bytes from one frame to another: only frames between them change their place.
static void list_shift(void) {
    uint32_t from = (uint32_t)random_below(&seed, list_count);
    uint32_t to = (uint32_t)random_below(&seed, list_count);
    uint32_t bytes = list[from].extra;
    if (from == to || !can_grow(list[from].form) || !can_grow(list[to].form) || !bytes) return;
    bytes = 16 * (1 + (uint32_t)random_below(&seed, bytes / 16));
    list[from].extra -= bytes;
    list[to].extra += bytes;
}

static void list_change(void) {
    uint32_t at = 1 + (uint32_t)random_below(&seed, list_count - 1);
    switch (random_below(&seed, 6)) {
    case 0:
        list_grow(at);
        break;
    case 1:
        list[random_below(&seed, list_count)].variant = (uint32_t)random_below(&seed, 3);
        break;
    case 2:
    case 3:
        list_shift();
        break;
    case 4:
        if (can_grow(list[at].form)) list[at].extra = 16 * (uint32_t)random_below(&seed, 8);
        break;
    default:
        if (list_count < FRAMES_MAX) list_grow(list_count);
    }
}

static void print_frames(const struct walk_trace *trace) {
    for (uint32_t i = 0; i < list_count || i < trace->count; i++)
        print_message("%2u: form %d wanted %#lx found %#lx\n", i,
                      i < list_count ? (int)list[i].form : -1, i < list_count ? pc_of(&list[i]) : 0,
                      i < trace->count ? trace->frames[i].pc : 0);
}

static bool is_as_wanted(const struct walk_trace *trace) {
    if (trace->count != list_count) return false;
    for (uint32_t i = 0; i < list_count; i++)
        if (trace->frames[i].pc != pc_of(&list[i])) return false;
    return true;
}

static void check(const struct walk_trace *trace, const char *name) {
    if (is_as_wanted(trace)) return;
    print_message("%s\n", name);
    print_frames(trace);
    fail();
}

// Walks with memory and, now and then, without; `keep` is checked against the list before.
static void run(unsigned changes_max) {
    struct walk_trace memory, full;
    static struct wanted before[FRAMES_MAX];
    uint64_t kept = 0, frames = 0;
    assert_true(walk_trace_init(&memory, LIMIT) && walk_trace_init(&full, LIMIT));
    list[0] = (struct wanted){.form = END};
    list_grow(1);
    const int rounds = getenv("CAIRN_LONG") ? ROUNDS : ROUNDS / 4;
    for (int round = 0; round < rounds; round++) {
        memcpy(before, list, sizeof list);
        uint64_t changes = random_below(&seed, changes_max + 1);
        for (uint64_t i = 0; i < changes; i++) list_change();
        stack_build();
        struct walk_result result = walk_stack(&memory, &start);
        check(&memory, "with memory");
        for (uint32_t i = 0; round && i < result.keep; i++)
            assert_int_equal(pc_of(&before[i]), pc_of(&list[i]));
        kept += result.keep;
        frames += list_count;
        if (round % 8) continue;
        walk_trace_reset(&full);
        walk_stack(&full, &start);
        check(&full, "without memory");
    }
    assert_true(kept > frames / 2);
}

static void test_one_change_at_a_time(void **state) {
    (void)state;
    seed = 1;
    run(1);
}

static void test_several_changes_at_a_time(void **state) {
    (void)state;
    seed = 2;
    run(4);
}

static int setup(void **state) {
    (void)state;
    object_init();
    stack = mmap(NULL, STACK_WORDS * sizeof *stack, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return stack != MAP_FAILED && rule_init() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_change_at_a_time),
        cmocka_unit_test(test_several_changes_at_a_time),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
