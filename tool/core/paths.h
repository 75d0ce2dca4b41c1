// SPDX-License-Identifier: Apache-2.0
// Who refers to a block: every word that leads into it, and the shortest way to it from a root.
#ifndef TOOL_CORE_PATHS_H
#define TOOL_CORE_PATHS_H

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

// A shortest way to the block in use that `address` lies in: a root's reference first, the last one
// leads to the block; none if no way leads there. False without memory.
bool core_find_path(const struct core_reach *reach, uint64_t address, struct core_references *path);

// The name of a register in an image of that machine (ELF e_machine); "?" if it has none here.
const char *core_register_name(uint32_t machine, uint32_t number);

#endif
