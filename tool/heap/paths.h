// SPDX-License-Identifier: Apache-2.0
// The shortest ways from roots to blocks: to one, or to all of them at once.
#ifndef TOOL_HEAP_PATHS_H
#define TOOL_HEAP_PATHS_H

#include "tool/heap/references.h"

// A shortest way to the block in use that `address` lies in: a root's reference first, the last one
// leads to the block; none if no way leads there. False without memory. Nothing need be marked.
bool core_find_path(const struct core_reach *reach, uint64_t address, struct core_references *path);

// A block that a root's word leads to.
struct core_entry {
    uint32_t number;
    uint64_t at;  // where that word lies; 0: in a register
};

// Four bytes for each block.
struct core_ways {
    const struct core_reach *reach;
    struct core_graph graph;           // numbers
    uint32_t *parents;                 // the block before it on the way, by number
    ARRAY(struct core_entry) entries;  // ascending by number; the first ENTRIES_MOST of them
    uint64_t places;                   // for core_place_done
};
enum { ENTRIES_MOST = 1 << 20 };

// Finds the ways to all blocks, and marks by them what is reachable. False without memory.
bool core_ways_open(struct core_reach *reach, struct core_ways *ways, struct error *error);
void core_ways_close(struct core_ways *ways);

// As core_find_path.
bool core_ways_to(struct core_ways *ways, uint64_t address, struct core_references *path);

#endif
