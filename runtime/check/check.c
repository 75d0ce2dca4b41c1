// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/check.h"

#ifdef CAIRN_CHECK
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "format/format.h"
#include "runtime/sys/arena.h"
#include "runtime/sys/sys.h"

static _Unwind_Reason_Code (*backtrace_all)(_Unwind_Trace_Fn, void *);
static uintptr_t (*get_ip)(struct _Unwind_Context *, int *);

void check_start(void) {
    void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return;
    *(void **)&backtrace_all = dlsym(library, "_Unwind_Backtrace");
    *(void **)&get_ip = dlsym(library, "_Unwind_GetIPInfo");
}

void check_that(bool is_so, const char *otherwise) {
    if (is_so) return;
    ssize_t unused = write(STDERR_FILENO, otherwise, strlen(otherwise));
    (void)unused;
    abort();
}

static struct arena check_arena;
static uint32_t check_lock;

struct comparison {
    uintptr_t first;  // the frame at which the walk began
    const struct frame *frames;
    uint32_t count;
    uint32_t at;
    bool has_begun;
    bool differs;
    uintptr_t other;
};

static _Unwind_Reason_Code compare_frame(struct _Unwind_Context *context, void *data) {
    struct comparison *comparison = data;
    int is_exact = 0;
    uintptr_t pc = get_ip(context, &is_exact) + (is_exact ? PROCESSOR_INSTRUCTION_BYTES : 0u);
    if (!comparison->has_begun && pc != comparison->first) return _URC_NO_REASON;
    comparison->has_begun = true;
    if (pc <= CAIRN_CUT_LIMIT) return _URC_NO_REASON;
    if (comparison->at < comparison->count &&
        comparison->frames[comparison->count - 1 - comparison->at].pc == pc) {
        comparison->at++;
        return _URC_NO_REASON;
    }
    comparison->other = pc;
    comparison->differs = true;
    return _URC_END_OF_STACK;
}

static void check_fail(const struct comparison *comparison) {
    char text[256];
    uintptr_t own = comparison->at < comparison->count
                        ? comparison->frames[comparison->count - 1 - comparison->at].pc
                        : 0;
    int length = snprintf(text, sizeof text, "cairn check: frame %u of %u: %#lx, libgcc has %#lx\n",
                          comparison->at, comparison->count, (unsigned long)own,
                          (unsigned long)comparison->other);
    ssize_t unused = write(STDERR_FILENO, text, (size_t)length);
    (void)unused;
    abort();
}

void check_walk(const struct walk_start *start, const struct frame *frames, uint32_t count) {
    struct comparison comparison = {.first = start->pc, .frames = frames, .count = count};
    if (!backtrace_all || !get_ip) return;
    // Cut or guessed stacks have no counterpart: libgcc stops where unwind information ends.
    if (count && frames[0].pc < CAIRN_CUT_LIMIT) return;
    backtrace_all(compare_frame, &comparison);
    if (comparison.differs || comparison.at < count) check_fail(&comparison);
}

// What each cell was first seen with.
struct known_stack {
    uint32_t count;
    uintptr_t *pcs;
};

static void check_remember(struct known_stack *known, const struct frame *frames, uint32_t count) {
    uintptr_t *pcs = arena_alloc(&check_arena, count * sizeof *pcs);
    if (!pcs) return;
    for (uint32_t i = 0; i < count; i++) pcs[i] = frames[i].pc;
    known->count = count;
    __atomic_store_n(&known->pcs, pcs, __ATOMIC_RELEASE);
}

void check_identity(uint32_t cell, const struct frame *frames, uint32_t count) {
    static struct known_stack *stacks_known;
    if (!stacks_known) stacks_known = sys_reserve(sizeof *stacks_known << 25);
    if (!stacks_known || cell <= CAIRN_CELL_OTHER) return;
    struct known_stack *known = &stacks_known[cell];
    // A fork can leave it locked for good: then this is not checked.
    for (unsigned tries = 0; __atomic_exchange_n(&check_lock, 1, __ATOMIC_ACQUIRE);)
        if (++tries > 10000) return;
    bool is_same = known->pcs == NULL || known->count == count;
    if (!known->pcs) check_remember(known, frames, count);
    for (uint32_t i = 0; is_same && known->pcs && i < count; i++)
        is_same = known->pcs[i] == frames[i].pc;
    __atomic_store_n(&check_lock, 0, __ATOMIC_RELEASE);
    if (is_same) return;
    static const char text[] = "cairn check: one cell for two stacks\n";
    ssize_t unused = write(STDERR_FILENO, text, sizeof text - 1);
    (void)unused;
    abort();
}
#endif
