// SPDX-License-Identifier: Apache-2.0
// An index in memory of which blocks refer to which. A walk that follows references in the core
// itself would read its pages again and again, since they are not in the order of addresses.
//
//     number  of a block in use: how many blocks in use come before it in the map
//     edge    a reference from one block to another: the number of that one, and which block of
//             its group it comes from; edges ascend by the block that they come from
//     group   GROUP_BLOCKS blocks with consecutive numbers, whose edges begin at one index
//
// It takes five bytes for each edge and a byte for each block. There is room for one edge per
// block, at least EDGES_LEAST, and EDGES_SPARE more; references of the blocks behind those are read
// from the core.
#ifndef TOOL_HEAP_GRAPH_H
#define TOOL_HEAP_GRAPH_H

#include "tool/heap/reach.h"

enum { GROUP_BLOCKS = 16, EDGES_SPARE = 1 << 20, EDGES_LEAST = 1 << 24 };

struct core_graph {
    const struct core_reach *reach;
    uint32_t count;           // of blocks
    uint32_t known;           // blocks with smaller numbers have their edges here
    uint64_t room;            // for so many edges
    bool is_filled;           // core_graph_fill was called
    uint32_t *ranks;          // number of the first block of each few words of the map
    uint32_t *starts;         // index of the first edge of each group
    uint64_t *is_inner;       // a bit for each block that is known: it has an edge
    ARRAY(uint32_t) targets;  // numbers, by index of the edge
    ARRAY(uint8_t) sources;   // that number modulo GROUP_BLOCKS, by index of the edge
};

// Numbers the blocks; no edge is known yet. False without memory.
bool core_graph_open(const struct core_reach *reach, struct core_graph *graph);

// Goes once through all blocks for their edges; of a `reach` that is marked, through the reachable
// ones. False without memory.
bool core_graph_fill(struct core_graph *graph);

// The numbers stay.
void core_graph_drop_edges(struct core_graph *graph);
void core_graph_close(struct core_graph *graph);

// Calls `see` for each block, by number.
void core_graph_each(const struct core_graph *graph,
                     void (*see)(void *context, uint32_t number, uint64_t place), void *context);

uint32_t core_graph_number(const struct core_graph *graph, uint64_t place);
uint64_t core_graph_place(const struct core_graph *graph, uint32_t number);

// False: the block is known to refer to no other.
static inline bool core_graph_is_inner(const struct core_graph *graph, uint32_t number) {
    return number >= graph->known || graph->is_inner[number / 64] >> number % 64 & 1;
}

#endif
