// SPDX-License-Identifier: Apache-2.0
// Whether a thread may load a library for cairn where it stands, by the frames of its stack.
//
// It may only if nothing that it is in the middle of can be met again on the way: the allocator,
// the dynamic linker, functions of libc that hold locks or that nobody can name (static functions
// of libc, such as the allocator's own). What is not known is not safe.
#ifndef TOOL_ATTACH_WHEREABOUTS_H
#define TOOL_ATTACH_WHEREABOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind { FRAME_PROGRAM, FRAME_LIBC, FRAME_LINKER, FRAME_ALLOCATOR };

struct whereabouts_frame {
    uint64_t pc;
    enum frame_kind kind;
    const char *name;  // of a function of libc; NULL: nobody knows
};

// A thread's stack, innermost frame first.
struct whereabouts_stack {
    const struct whereabouts_frame *frames;
    size_t count;
    bool is_complete;  // the last frame is the outermost
    bool is_in_system_call;
    uint64_t code_start, code_end;  // what is_in_range is about; equal: nothing
};

struct whereabouts {
    bool is_safe;       // may load a library
    bool is_in_linker;  // holds up whoever loads a library
    bool is_in_range;   // one of its frames is in the code that was asked about
    char why[160];      // not safe: a clause
};

struct whereabouts whereabouts_of(const struct whereabouts_stack *stack);

#endif
