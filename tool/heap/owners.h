// SPDX-License-Identifier: Apache-2.0
// Who keeps the blocks of a process: the tree of dominators of what refers to what, from its roots.
// A block's retained size is what would go if it went: its own and that of all blocks that every
// way to them passes it.
//
// What variables and other lasting memory keep is theirs, whatever stacks and registers refer to it
// as well: these hold what is just in use, and much that was. And what either leads to is not the
// allocator's, whose lists have every block.
//
// References are found as reach.h finds them, conservatively: a number that looks like an address
// counts as one. A root is a variable, a frame of a thread's stack, its registers, its thread-local
// data, or other memory of the process. What no root leads to is below a root of its own,
// CORE_LEAKED_NAME, by the blocks that nothing else leaked refers to; of a ring, by the one with
// the lowest address.
//
// A thread's stack is divided among the functions of its frames, and those among their variables.
// Its local data lasts as variables do.
//
//     node   0 is everything; then come the roots, then the blocks by their numbers (references.h)
//     place  of a node in the order of dominators.h: each node comes behind its owner
#ifndef TOOL_HEAP_OWNERS_H
#define TOOL_HEAP_OWNERS_H

#include "tool/heap/dominators.h"
#include "tool/heap/owner_roots.h"

struct core_owners {
    struct core_graph graph;  // numbers
    struct owner_roots roots;
    struct dominators tree;  // its parents are gone
    uint64_t *retained;      // bytes, by place
    uint32_t *counts;        // retained blocks, by place
    uint32_t *starts;        // places of those that a place owns: children[starts[place]] to ...
    uint32_t *children;      // ... starts[place + 1] - 1
    uint64_t leaked_bytes, leaked_count;
    uint64_t shared_bytes, shared_count;  // blocks whose owner does not refer to them itself:
                                          // several of what it owns do
    uint64_t inner_bytes, inner_count;    // reachable blocks that no word leads to the start of
};

// Of a reach with a map, which loses the list of its chunks; nothing need be marked. `types` names
// the roots' variables; NULL: they need no names. `has_locals`: also those of functions.
bool core_owners_find(struct core_reach *reach, struct core_types *types, bool has_locals,
                      struct core_owners *owners, struct error *error);
void core_owners_free(struct core_owners *owners);

// The root at a place; NULL: a block is there, or everything.
const struct owner_root *core_owners_root(const struct core_owners *owners, uint32_t place);

// The size of the block at a place: what it retains and those that it owns do not. A root has none.
uint64_t core_owners_size(const struct core_owners *owners, uint32_t place);

// The number of the block at a place that has one.
uint32_t core_owners_block(const struct core_owners *owners, uint32_t place);

// A block that is lost, with what only it leads to; or, not direct, one of several lost ones' own.
struct core_lost_block {
    uint64_t address, size;
    bool is_direct;
    uint64_t below_blocks, below_bytes;
};

// Calls `see` for those that nothing lost owns, until it returns false; each lost block is one of
// them or below one. False without memory, or if `see` was.
bool core_owners_each_lost(const struct core_owners *owners,
                           bool (*see)(void *context, const struct core_lost_block *lost),
                           void *context);

#endif
