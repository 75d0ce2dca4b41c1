// SPDX-License-Identifier: Apache-2.0
// Who refers to a block, and whom a block refers to: the words themselves.
#ifndef TOOL_CORE_REFERENCES_H
#define TOOL_CORE_REFERENCES_H

#include "tool/core/reach.h"

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

#endif
