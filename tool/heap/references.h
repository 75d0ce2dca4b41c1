// SPDX-License-Identifier: Apache-2.0
// Words that lead to blocks: those that refer to a block, those in a block, and, for many questions
// about leaked blocks, an index of the references among these. Only leaked blocks refer to leaked
// ones, and most often few of all blocks are.
#ifndef TOOL_HEAP_REFERENCES_H
#define TOOL_HEAP_REFERENCES_H

#include "tool/heap/graph.h"
#include "tool/heap/reach.h"

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
