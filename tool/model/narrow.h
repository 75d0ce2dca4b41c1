// SPDX-License-Identifier: Apache-2.0
// Takes away from a profile what a filter does not want. Only the values of the stacks, and which
// stacks there are, change: totals, peak and threads stay those of the whole process, so that
// shares of the whole can be computed. In this order, since cells know stacks as they were built.
#ifndef TOOL_MODEL_NARROW_H
#define TOOL_MODEL_NARROW_H

#include "tool/model/measure.h"
#include "tool/model/profile.h"

// Keeps what threads allocated, `are_kept` is by thread. Threads of one slot cannot be
// distinguished: `is_estimate` becomes true if a kept one shares its slot with one that is not.
// False without memory.
bool profile_keep_threads(struct profile *profile, const bool *are_kept, bool *is_estimate);

// Slot of the thread that allocated the blocks of a cell; false: not known.
bool narrow_cell_slot(const struct profile *profile, size_t cell, uint16_t *slot);

// Keeps what was allocated in regions of the program; `are_kept` is by scope, of `count`.
void profile_keep_regions(struct profile *profile, const bool *are_kept, size_t count);

enum lifespan {
    LIFESPAN_ANY,
    LIFESPAN_LIVING,  // blocks that are left at the end
    LIFESPAN_GONE,    // blocks that were freed
    LIFESPAN_SHORT,   // blocks that were freed within some time: profile_keep_short
};
// What a stack held at the peak is not known by lifespan: it becomes 0.
void profile_keep_lifespan(struct profile *profile, enum lifespan lifespan);
// Keeps blocks that were freed within `short_ns`, as far as the buckets of ages tell (--ages);
// their bytes are taken to be as those of their stack's freed blocks are on average. False without
// memory, or if no ages were recorded.
bool profile_keep_short(struct profile *profile, uint64_t short_ns, struct error *error);

// Of what is left at the end only that counts to which nothing led: a block for the stack that lost
// it, an indirectly lost one for that of the directly lost one. Needs profile->reachability.
void profile_keep_lost(struct profile *profile);

// Nothing counts as left at the end.
void profile_forget_exit(struct profile *profile);

// Keeps stacks, `are_kept` is by stack.
void profile_keep_stacks(struct profile *profile, const bool *are_kept);

// Keeps the `top` stacks (0: all) with the most of a measure, of those with at least `least`. False
// without memory.
bool profile_keep_largest(struct profile *profile, enum measure by, size_t top, int64_t least);

// Totals, peak and end become those of the stacks that were kept: the part stands for itself.
void profile_sum_up(struct profile *profile);

// Cuts each stack to its `depth` innermost calls. False without memory.
bool profile_cut_stacks(struct profile *profile, size_t depth);

#endif
