// SPDX-License-Identifier: Apache-2.0
// Arenas: allocators that give all blocks of an arena back at once (APR's pools, PostgreSQL's
// memory contexts), as rows of --wrap name them. Each arena is known by its address, may have a
// parent with which it goes, and a name, under which its blocks are counted (struct cairn_scope).
//
// An arena knows its blocks, and gives them back one by one when it is cleared, each to the stack
// that asked for it (heap_stacks.h). One lock for all of a heap, as in pool.h.
#ifndef RUNTIME_API_ARENA_H
#define RUNTIME_API_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arenas;
struct heap_block;  // heap_stacks.h

// Blocks of arenas without a name are counted as `scope`'s. NULL without memory.
struct arenas *arenas_make(uint32_t scope);

// A new arena; `scope` 0: it has no name. One that was not seen when it was made is known from its
// first block or child on.
void arena_open(struct arenas *arenas, uintptr_t handle, uintptr_t parent, uint32_t scope);
// Its name, where that is given later: what it holds goes there, each block with its stack.
void arena_name(struct arenas *arenas, uintptr_t handle, uint32_t scope);
void arena_move(struct arenas *arenas, uintptr_t handle, uintptr_t parent);
// All its blocks are given back, and those within it are gone. `is_over`: it itself is, too.
void arena_clear(struct arenas *arenas, uintptr_t handle, bool is_over);

void arena_add(struct arenas *arenas, uintptr_t handle, const void *block, size_t bytes,
               uint32_t cell);
// False: no arena has such a block. `taken` gets what it was.
bool arena_take(struct arenas *arenas, const void *block, struct heap_block *taken);
// Its free was none. That counts as another allocation.
void arena_put_back(struct arenas *arenas, const void *block, const struct heap_block *taken);

// In a forked child, as pools_inherit (pool.h).
void arenas_inherit(void);

#endif
