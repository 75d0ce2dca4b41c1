// SPDX-License-Identifier: Apache-2.0
// The stack of a thread where libc has no unwind information, as musl's is built. All there is are
// words on it that may be return addresses, since the instruction before is a call; words that are
// left over from earlier calls look the same.
//
// What is known nevertheless: a thread that runs the program's code is there, unless cairn's fork
// is near, which handlers of the program's run under. One that waits in a system call that no
// allocator makes has no frame of cairn's, which calls allocators only; the next word of the
// program's leads to who waits, and a word of dlopen before that may be a frame. In all other cases
// every word near enough may be a frame: cairn is no further out than the frames of an allocator
// are large. Under a signal handler the whole stack counts.
#ifndef TOOL_ATTACH_BLIND_STACK_H
#define TOOL_ATTACH_BLIND_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/proc/threads.h"

enum blind_place { BLIND_NO_CODE, BLIND_LIBC, BLIND_OWN, BLIND_PROGRAM };

// The process, as far as this has to know it.
struct blind_view {
    bool (*read)(void *context, uint64_t address, uint64_t *word);  // false: nothing is there
    enum blind_place (*place)(void *context, uint64_t address);
    const char *(*name)(void *context, uint64_t pc);  // of the function there; NULL: not known
    void *context;
};

struct blind_frame {
    uint64_t pc;
    enum blind_place place;
};

enum { BLIND_FRAMES_MAX = 256 };

struct blind_stack {
    struct blind_frame frames[BLIND_FRAMES_MAX];  // innermost first
    size_t count;
    bool is_known;  // these are its frames, out to the program; else they are what may be frames
    bool is_full;   // there may be more
};

// `is_for_calls`: a thread that waits for a lock may be taken to make calls, if it does not hold
// the linker's: what it is asked to do then waits for the lock as well, while other threads go on.
void blind_stack_read(struct blind_stack *stack, const struct blind_view *view,
                      const struct stopped_thread *thread, bool is_for_calls);

#endif
