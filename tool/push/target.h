// SPDX-License-Identifier: Apache-2.0
// A recorded process whose profile is taken again and again: what its stacks allocated since the
// last time, and what they hold now. The process is neither stopped nor asked, and its recording
// can be read after its end, so that nothing of the last interval is lost.
#ifndef TOOL_PUSH_TARGET_H
#define TOOL_PUSH_TARGET_H

#include "tool/model/heaps.h"
#include "tool/model/live.h"
#include "tool/query/live.h"
#include "tool/query/names.h"

// What a stack had allocated when an interval began.
struct baseline {
    uint64_t allocations, allocated_bytes;
    struct estimate allocated;
};

struct target {
    struct live_process process;
    struct live live;
    struct names *names;
    ARRAY(struct baseline) baselines;  // by stack
    ARRAY(struct baseline) of_heaps;   // by entry of HEAP_STACKS: of allocators by name
    struct heap_names heap_names;      // as they were when the last profile was taken
    ARRAY(uint8_t) are_named;          // by stack: its names were looked for
    uint64_t taken_unix_ns;            // where the next interval begins
    bool is_over;                      // the process, or what it ran
};

// A profile of an interval, for an engine.
struct taken {
    struct profile profile;  // the target's, with stacks of its own
    struct stack folded;     // the sum of those that are over the limit
    struct stack_more folded_more;
    size_t folded_count;
    uint64_t start_unix_ns, end_unix_ns;
};

// `is_new`: what it allocated so far belongs to the first interval. Takes the first look.
bool target_open(const struct live_process *process, bool is_new, uint64_t clock_ns,
                 uint64_t unix_ns, struct target *target, struct error *error);
void target_close(struct target *target);
// Gives back what is read anew at each look: there may be many targets, and looks are seldom.
void target_rest(struct target *target);

// Whether it writes this recording. The paths say nothing: whoever holds the memory of a recording,
// this program too, has one.
bool target_is_of(const struct target *target, const struct live_process *process);

// Looks again. False if its recording cannot be read any more.
bool target_look(struct target *target, uint64_t clock_ns, struct error *error);

// What the last look saw, since the last target_advance, of allocators by name too, if the process
// has any (struct stack.heap): at most `stacks_most` stacks, the largest
// by their share of what is held or was allocated, with names. False without memory.
bool target_take(struct target *target, size_t stacks_most, uint64_t unix_ns, struct taken *taken,
                 struct error *error);
// The same of stacks that somebody else has. `taken` gets a list of its own.
bool taken_make(const struct profile *profile, size_t stacks_most, struct taken *taken,
                struct error *error);
void target_taken_free(struct taken *taken);
// The next interval begins where this one ends.
bool target_advance(struct target *target, uint64_t unix_ns);

#endif
