// SPDX-License-Identifier: Apache-2.0
// Which leaked blocks refer to which: for those who ask of many. Only leaked ones refer to leaked
// ones, and most often few of all blocks are.
#ifndef TOOL_CORE_LEAKS_H
#define TOOL_CORE_LEAKS_H

#include "tool/core/graph.h"
#include "tool/core/references.h"

// Eight bytes for each reference.
struct core_leaks {
    const struct core_reach *reach;
    struct core_graph graph;  // numbers
    ARRAY(uint64_t)
    pairs;            // ascending: number of the block that is referred to, and in the lower
                      // half that of the one that refers to it
    uint64_t places;  // for core_looked_at
};

// Of a `reach` that is marked. False without memory.
bool core_leaks_open(const struct core_reach *reach, struct core_leaks *leaks);
void core_leaks_close(struct core_leaks *leaks);

// The first `most` references to the leaked block at `address`, but for those from itself, and how
// many there are. False without memory.
bool core_leaks_to(struct core_leaks *leaks, uint64_t address, size_t most,
                   struct core_references *found, size_t *count);

#endif
