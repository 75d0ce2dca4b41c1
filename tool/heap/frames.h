// SPDX-License-Identifier: Apache-2.0
// The functions that a process' threads were in, and their variables by debug information: where
// they lie on the stack, or what a register has of them.
//
// Frames are found by libdwfl out of the image. A variable counts whose place is on the stack, at
// a register's value plus a distance, or in a register; others have no place.
#ifndef TOOL_HEAP_FRAMES_H
#define TOOL_HEAP_FRAMES_H

#include "tool/heap/thread_locals.h"
#include "tool/heap/types.h"
#include "tool/types/type.h"

// A module whose debug information is read.
struct typed_module {
    uint64_t bias;
    struct types *types;
    struct thread_locals locals;
};

struct thread_frame {
    const struct core_thread *thread;
    uint64_t stack;  // its stack pointer: what belongs to the frame lies there and above
    uint64_t pc;     // an address in the instruction that it was in or called from
};

// Calls `see` until it returns false: thread by thread, the innermost frame first.
void frames_each(const struct core_image *core, struct core_types *types,
                 bool (*see)(void *context, const struct thread_frame *frame), void *context);

struct frame_variable {
    const char *name, *function;
    const struct type *type;
    uint64_t address, value;
    bool is_value;     // it has no address
    bool is_unplaced;  // neither is known: optimized code has it nowhere, or elsewhere
    const struct core_thread *thread;
};

// The same for each variable of these frames.
void frames_each_variable(const struct core_image *core, struct core_types *types,
                          const struct typed_module *modules, size_t module_count,
                          bool (*see)(void *context, const struct frame_variable *variable),
                          void *context);

#endif
