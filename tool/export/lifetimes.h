// SPDX-License-Identifier: Apache-2.0
// Blocks with a begin and an end, made up of what stacks held at moments: for formats that want
// single allocations, where a recording has sums.
//
// What a stack rose by from one moment to the next becomes a block that comes then; where it falls,
// its last blocks go, split if need be. What came and went unseen by any moment is one block that
// does both at the end. So what is left at a moment is right for each stack, and so is the sum of
// all that was allocated; a block stands for any number of real ones.
#ifndef TOOL_EXPORT_LIFETIMES_H
#define TOOL_EXPORT_LIFETIMES_H

#include "tool/export/moments.h"

#define LIFETIME_NEVER UINT32_MAX
struct lifetime_block {
    uint32_t stack;     // its place in the profile
    uint32_t from, to;  // moments; `to` LIFETIME_NEVER: it is left
    int64_t bytes;
};

struct lifetime_event {
    uint32_t block, moment;
    uint32_t order;  // within a moment: blocks go, blocks come, and go again
    bool is_free;
};

struct lifetime_change;

struct lifetimes {
    struct moments moments;
    ARRAY(struct lifetime_change) changes;
    ARRAY(struct lifetime_block) blocks;
    ARRAY(struct lifetime_event) events;  // in the order of time
};

// False without memory. The export must outlive it.
bool lifetimes_make(struct lifetimes *lifetimes, const struct export *export, struct error *error);
void lifetimes_free(struct lifetimes *lifetimes);

#endif
