// SPDX-License-Identifier: Apache-2.0
// Words that lead to blocks: those that refer to a block, those in a block, and, for many questions
// about leaked blocks, an index of the references among these. Only leaked blocks refer to leaked
// ones, and most often few of all blocks are.
//
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
#ifndef TOOL_HEAP_REFERENCES_H
#define TOOL_HEAP_REFERENCES_H

#include "tool/heap/reach.h"

enum { GROUP_BLOCKS = 16, EDGES_SPARE = 1 << 20, EDGES_LEAST = 1 << 24 };

struct core_graph {
    const struct core_reach *reach;
    uint32_t count;                // of blocks
    uint32_t known;                // blocks with smaller numbers have their edges here
    uint64_t room;                 // for so many edges
    bool is_filled;                // core_graph_fill was called
    const struct spans *left_out;  // settled: words there are no block's; NULL: all are
    uint32_t *ranks;               // number of the first block of each few words of the map
    uint32_t *starts;              // index of the first edge of each group
    uint64_t *is_inner;            // a bit for each block that is known: it has an edge
    uint64_t *is_met;  // a bit for each block: a word leads to its start; NULL: not asked for
    ARRAY(uint32_t) targets;  // numbers, by index of the edge
    ARRAY(uint8_t) sources;   // that number modulo GROUP_BLOCKS, by index of the edge
};

// Numbers the blocks; no edge is known yet. False without memory.
bool core_graph_open(const struct core_reach *reach, struct core_graph *graph);

// Goes once through all blocks for their edges; of a `reach` that is marked, through the reachable
// ones. False without memory.
bool core_graph_fill(struct core_graph *graph);

// From now on it is noted which blocks a word leads to the start of; to others words lead only
// inside. False without memory.
bool core_graph_note_starts(struct core_graph *graph);

// Notes a word that leads to the block in use at a place.
static inline void core_graph_meet(struct core_graph *graph, uint64_t word, uint64_t place,
                                   uint32_t number) {
    if (graph->is_met && word == block_map_address(&graph->reach->map, place))
        graph->is_met[number / 64] |= (uint64_t)1 << number % 64;
}

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

// A word that leads into a block.
struct core_reference {
    uint64_t at;     // where the word lies; of a register: 0
    uint64_t to;     // its value
    uint64_t block;  // address of the block in use that it lies in; 0: it is a root's
    const struct core_thread *thread;  // of a register
    uint32_t register_number;          // of that thread
};

struct core_references {
    ARRAY(struct core_reference) items;
};
void core_references_free(struct core_references *references);

// All references to the block in use that `address` lies in, but for those from itself: registers,
// other roots, then blocks, each by address. False without memory.
bool core_find_incoming(const struct core_reach *reach, uint64_t address,
                        struct core_references *references);

// All references from the block at `address` (in use or free) of `size` bytes to other blocks in
// use, by the place of the word. False without memory.
bool core_find_outgoing(const struct core_reach *reach, uint64_t address, uint64_t size,
                        struct core_references *references);

// Adds the first reference to the block in use at a place of the map, from a register or else from
// another root. False without memory, or if there is none.
bool core_find_in_roots(const struct core_reach *reach, uint64_t place,
                        struct core_references *found);

// Adds at most `most` references from the block in use at one place to that at another. False
// without memory, or if there is none.
bool core_find_between(const struct core_reach *reach, uint64_t from, uint64_t to, size_t most,
                       struct core_references *found);

// The name of a register in an image of that machine (ELF e_machine); "?" if it has none here.
const char *core_register_name(uint32_t machine, uint32_t number);

// Eight bytes for each reference.
struct core_leaks {
    const struct core_reach *reach;
    struct core_graph graph;  // numbers
    ARRAY(uint64_t)
    pairs;            // ascending: number of the block that is referred to, and in the lower
                      // half that of the one that refers to it
    uint64_t places;  // for core_place_done
};

// Of a `reach` that is marked. False without memory.
bool core_leaks_open(const struct core_reach *reach, struct core_leaks *leaks);
void core_leaks_close(struct core_leaks *leaks);

// The first `most` references to the leaked block at `address`, but for those from itself, and how
// many there are. False without memory.
bool core_leaks_to(struct core_leaks *leaks, uint64_t address, size_t most,
                   struct core_references *found, size_t *count);

#endif
