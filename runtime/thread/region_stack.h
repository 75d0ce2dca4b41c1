// SPDX-License-Identifier: Apache-2.0
// The regions of the program that a thread is in (include/cairn/cairn.h), and what happened in
// them.
//
// A named region becomes a part of the identity of each stack seen in it: stack_intern gets one
// pseudo frame more. That is looked at only where a stack is walked; entering or leaving a region
// makes the thread forget the stack that it remembers. A region without a name only counts.
//
// Figures of a region are differences of the thread's own counters. Its highest point needs to be
// caught: a free from above `high_bytes` goes the slow way that also finds the process' peak.
//
// One owner thread, its gate BUSY.
#ifndef RUNTIME_THREAD_REGION_STACK_H
#define RUNTIME_THREAD_REGION_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/sys.h"

struct thread;

struct region_stack_level {
    uint32_t outer_id;
    int64_t outer_high_bytes;
    uint64_t allocations, frees, allocated_bytes;  // the thread's when it began
    int64_t net_bytes;
};

enum { NEST_LEVELS = 64 };

struct region_stack {
    uint32_t id;         // scope of the innermost region with a name; 0: none
    uint32_t depth;      // open regions; those beyond NEST_LEVELS are part of the last one
    uint32_t is_off;     // the thread's allocations are not recorded
    int64_t high_bytes;  // highest net_bytes that was left in the innermost one; INT64_MAX: nobody
                         // wants to know
    struct region_stack_level *levels;  // NULL: none was ever begun
};

// What happened since a region began, by this thread.
struct region_stack_figures {
    uint64_t allocations, frees, allocated_bytes;
    int64_t net_bytes;   // allocated minus freed
    int64_t rise_bytes;  // the most that net_bytes was
};

// Outside of all regions.
void region_stack_reset(struct thread *thread);

// `name` NULL or "": without a name. False without memory.
bool region_stack_begin(struct thread *thread, const char *name);

// The same as a scope that is there already: a context. 0: as without a name.
bool region_stack_begin_scope(struct thread *thread, uint32_t id);

// Ends the innermost one. False if there is none.
bool region_stack_end(struct thread *thread, struct region_stack_figures *figures);

// The innermost one so far; false if there is none.
bool region_stack_look(struct thread *thread, struct region_stack_figures *figures);

// The most that the thread's net_bytes was since it asked for the first time.
int64_t region_stack_thread_high(struct thread *thread);

// Switches recording of the thread's allocations. Off, it remembers no stack and has no valid
// trace, so that each allocation goes the way of unusual events, where is_off is looked at.
void region_stack_switch(struct thread *thread, bool is_on);

// net_bytes may be about to fall: keeps it if it is the highest, and sets the bound that leads
// here.
void region_stack_note(struct thread *thread);

// Puts the region behind `count` frames if there is room for one more; the new number of frames.
ALWAYS_INLINE uint32_t region_stack_frame(const struct region_stack *nest, struct frame *frames,
                                          uint32_t count, uint32_t limit) {
    if (likely(!nest->id) || count >= limit) return count;
    frames[count] = (struct frame){.pc = FRAME_REGION | nest->id};
    return count + 1;
}

#endif
