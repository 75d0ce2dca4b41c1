// SPDX-License-Identifier: Apache-2.0
#include "runtime/managed/stack.h"

#include "format/format.h"
#include "runtime/sys/sys.h"

uintptr_t managed_mark = CAIRN_CUT_DEPTH;

bool managed_maker_init(struct managed_maker *maker, uint32_t limit) {
    maker->limit = limit;
    const size_t room = (size_t)limit + 1;  // for a region
    maker->frames = sys_reserve(room * sizeof *maker->frames);
    maker->last_frames = sys_reserve(room * sizeof *maker->frames);
    maker->inside_out = sys_reserve(limit * sizeof *maker->inside_out);
    return maker->frames && maker->last_frames && maker->inside_out;
}

void managed_push_native(struct managed_maker *maker, struct managed_native native,
                         uint64_t stack) {
    for (uint32_t i = native.count; i-- > 0;) {
        const struct frame *frame = &native.frames[i];
        bool is_mark = frame->pc < CAIRN_CUT_LIMIT;
        if (stack && (is_mark || frame->stack >= stack)) break;
        // A damaged stack may hold any word.
        managed_push(maker, frame->pc & ~FRAME_PYTHON);
    }
}

// The frames outermost first; how many outer ones are those of the stack before.
static uint32_t turn(struct managed_maker *maker) {
    uint32_t keep = 0;
    for (uint32_t i = 0; i < maker->count; i++) {
        uintptr_t pc = maker->inside_out[maker->count - 1 - i];
        maker->frames[i].pc = pc;
        if (keep == i && i < maker->last_count && maker->last_frames[i].pc == pc) keep++;
    }
    return keep;
}

// Torn out of here by a handler that jumps, there is no last one.
struct managed_stack managed_finish(struct managed_maker *maker, bool is_nameless) {
    if (maker->count == maker->limit && maker->count)
        maker->inside_out[maker->count - 1] = managed_mark;
    uint32_t keep = turn(maker), count = maker->count;
    struct frame *frames = maker->frames;
    maker->last_count = 0;
    compiler_barrier();
    maker->frames = maker->last_frames;
    maker->last_frames = frames;
    compiler_barrier();
    maker->last_count = count;
    return (struct managed_stack){frames, count, keep, is_nameless};
}
