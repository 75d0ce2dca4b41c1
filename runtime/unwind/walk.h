// SPDX-License-Identifier: Apache-2.0
// Walks a thread's call stack by .eh_frame.
#ifndef RUNTIME_UNWIND_WALK_H
#define RUNTIME_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

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

// What came of a walk. Frames are return addresses, innermost first; a stack that was cut ends in
// a pseudo frame (enum cairn_cut).
struct walk_result {
    uint32_t count;
    bool has_new_code;  // a rule was worked out: code not seen before, or forgotten
};

// Writes up to `capacity` frames (at least 2). Reads stack memory only inside `range`, extended by
// sys_is_readable. No locks but those object_find may take for new code; not re-entrant per range.
struct walk_result walk_stack(const struct walk_start *start, struct walk_range *range,
                              uintptr_t *frames, uint32_t capacity);

#endif
