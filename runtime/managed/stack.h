// SPDX-License-Identifier: Apache-2.0
// A thread's stack with frames of another language between the native ones: made from the innermost
// frame outwards, handed out outermost first, and compared with the one before.
#ifndef RUNTIME_MANAGED_STACK_H
#define RUNTIME_MANAGED_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/frame.h"
#include "runtime/sys/sys.h"

// Native frames, outermost first.
struct managed_native {
    const struct frame *frames;
    uint32_t count;
};

// How they are walked from a frame that is not the thread's innermost: where it goes on, its stack
// pointer, and where the frame pointer that it sees is stored.
struct managed_walker {
    struct managed_native (*walk)(void *context, uintptr_t pc, uintptr_t stack,
                                  uintptr_t *frame_slot);
    void *context;
};

struct managed_stack {
    struct frame
        *frames;  // outermost first; only `pc` is set. There is room for one more than the limit
    uint32_t count;
    uint32_t keep;     // outer frames whose addresses are those of the stack before
    bool is_nameless;  // a code could not be kept for lack of room
};

// A stack in the making, and the last one. One owner.
struct managed_maker {
    struct frame *frames, *last_frames;  // outermost first
    uintptr_t *inside_out;               // innermost first, in the making
    uint32_t limit, count, last_count;
};

// Marks stacks as deep as the limit: enum cairn_cut.
extern HIDDEN uintptr_t managed_mark;

// For stacks of at most `limit` frames; false without memory.
bool managed_maker_init(struct managed_maker *maker, uint32_t limit);

// The next frame outwards; beyond the limit there is none.
static inline void managed_push(struct managed_maker *maker, uintptr_t pc) {
    if (maker->count < maker->limit) maker->inside_out[maker->count++] = pc;
}

// The native frames inside of `stack`; 0: all, with the mark of how the walk ended.
void managed_push_native(struct managed_maker *maker, struct managed_native native, uint64_t stack);

// A stack as deep as the limit is marked as cut. It becomes the last one, and is valid until the
// next but one.
struct managed_stack managed_finish(struct managed_maker *maker, bool is_nameless);

#endif
