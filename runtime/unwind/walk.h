// SPDX-License-Identifier: Apache-2.0
// Walks a thread's call stack by .eh_frame, remembering the last one.
//
// Most stacks share all but a few frames with the one before. A walk goes outwards from the top
// until it meets a frame of the last trace, same address, same stack pointer, same place of the
// saved frame pointer; from there on it only compares the words that the last walk read. The result
// is what a full walk would give, because a step depends on nothing else:
//   - the rule of the address; when code is unloaded a generation moves and the trace is forgotten
//   - the return address word, compared for every frame
//   - the frame pointer, where a rule uses it: compared too
//   - other words, for the rare rules that read them: such frames end the part that is compared
// The check build compares every walk with libgcc's.
#ifndef RUNTIME_UNWIND_WALK_H
#define RUNTIME_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/frame.h"

// Where a walk begins: the state of the caller of a hook right after the call returns.
struct walk_start {
    uintptr_t pc;           // return address of the hook
    uintptr_t stack;        // stack pointer then
    uintptr_t *frame_slot;  // where the hook saved the frame pointer register
};

// The stack memory that a thread's walks may read: known to be mapped and ascending. Walks extend
// it page by page as they need; it starts anew when the stack pointer is elsewhere (coroutines,
// signal stacks).
struct walk_range {
    uintptr_t low, high;
};

// A word that the last walk read, and what it was.
struct walk_check {
    const uintptr_t *slot;
    uintptr_t value;
};

// A thread's last trace. One owner.
struct walk_trace {
    struct frame *frames;  // outermost first
    // Words read by the walk, outermost first: frame i goes on as before if the first
    // frames[i].check_count are unchanged.
    struct walk_check *checks;
    struct fresh_frame *fresh;  // room for a walk in progress
    uint32_t limit;             // most frames of a stack, at most CAIRN_DEPTH_MAX
    uint32_t count;             // 0: no trace
    uint32_t usable_count;      // outer frames that can be verified
    uint32_t generation;        // of the rules
    struct walk_range range;
};

struct walk_result {
    uint32_t keep;      // outer frames whose addresses are those of the trace before
    bool has_new_code;  // a rule was worked out: code not seen before, or forgotten
};

// False without memory.
bool walk_trace_init(struct walk_trace *trace, uint32_t limit);

// Forgets the trace: its walk may have been interrupted for good.
void walk_trace_reset(struct walk_trace *trace);

// Makes the trace that of the present stack; a stack that was cut has a pseudo frame (enum
// cairn_cut) outermost. Reads stack memory only inside `range`, extended by sys_is_readable. No
// locks but those that object_find may take for new code.
struct walk_result walk_stack(struct walk_trace *trace, const struct walk_start *start);

#endif
