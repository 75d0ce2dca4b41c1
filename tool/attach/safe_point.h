// SPDX-License-Identifier: Apache-2.0
// Decides by the frames of a thread's stack whether the thread may load a library at this point.
//
// It may not inside anything that loading may enter again: the allocator, the dynamic linker,
// functions of libc that hold locks or that have no name (static functions of libc, such as the
// allocator's own). What is not known is not safe.
#ifndef TOOL_ATTACH_SAFE_POINT_H
#define TOOL_ATTACH_SAFE_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind { FRAME_PROGRAM, FRAME_LIBC, FRAME_LINKER, FRAME_ALLOCATOR };

struct safe_point_frame {
    uint64_t pc;
    enum frame_kind kind;
    const char *name;  // of a function of libc; NULL: not known
};

// A thread's stack, innermost frame first.
struct safe_point_stack {
    const struct safe_point_frame *frames;
    size_t count;
    bool is_complete;  // the last frame is the outermost
    bool is_in_system_call;
    uint64_t code_start, code_end;  // what is_in_range is about; equal: nothing
};

struct safe_point {
    bool is_safe;           // may load a library
    bool is_in_linker;      // loading a library would wait for it
    bool is_making_thread;  // in pthread_create: one may have its memory, and be on no list yet
    bool is_in_range;       // one of its frames is in the code that was asked about
    char why[160];          // not safe: a clause
};

struct safe_point safe_point_judge(const struct safe_point_stack *stack);

#endif
