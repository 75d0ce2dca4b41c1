// SPDX-License-Identifier: Apache-2.0
// A walk as most are from end to end: by plain rules, which ask for nothing but the stack pointer,
// until a frame of the old trace is met from which on that still holds. The general walk (walk.c)
// knows every case; it goes on where this one stops, and without this one finds the same.
#ifndef RUNTIME_UNWIND_WALK_PLAIN_H
#define RUNTIME_UNWIND_WALK_PLAIN_H

#include <stdint.h>

#include "runtime/unwind/walk.h"

// Where such a walk has stopped, at a frame that is not in the trace yet.
struct plain_walk {
    const struct walk_start *start;
    uintptr_t pc, stack;  // of that frame
    const uintptr_t *frame_slot;
    uint32_t fresh_count;  // frames before it, in trace->fresh, all with plain rules
    uint32_t differs;      // what checks_verify said of the candidate; 0: not asked
    int64_t candidate;     // frame of the old trace to compare with next; negative: none left
};

// Walks from walk->start. The number of outer frames whose addresses are those of the trace before,
// which is now that of the stack; 0: it has stopped, and the trace is as it was.
uint32_t walk_plain(struct walk_trace *trace, struct plain_walk *walk);

#endif
