// SPDX-License-Identifier: Apache-2.0
// Pools: allocators of the program's own, which tell about each of their blocks.
//
// A pool's memory is a block of the heap, or several, so its blocks cannot be entered in the live
// map: each pool has a table of its own, in memory of cairn's. It holds complemented addresses, so
// that leak scanners take nothing in it for a pointer. What all pools of a name did is counted in
// the recording (struct cairn_scope), with atomic additions: pools may be used by several threads.
//
// Threads take turns at a table by a lock that nobody waits for long: an event that does not get it
// is counted as lost. A signal handler that interrupts its own thread's turn loses its event too.
// All pools are in a list, for forked children.
#ifndef RUNTIME_API_POOL_H
#define RUNTIME_API_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;
struct heap_block;  // heap_stacks.h

// What all pools of a name did (a number of a scope) goes up by so much.
void pool_count_allocs(uint32_t scope, uint64_t count, uint64_t bytes);
void pool_count_frees(uint32_t scope, uint64_t count, uint64_t bytes);

// NULL without memory or room for the name.
struct pool *pool_make(const char *name);
// One that counts by stack, too: an allocator by name.
struct pool *pool_make_heap(const char *name);
// `cell`: who asked for it, where that counts.
void pool_add(struct pool *pool, const void *block, size_t bytes, uint32_t cell);
// False: it has no such block. `taken` (or NULL) gets what it was.
bool pool_take(struct pool *pool, const void *block, struct heap_block *taken);
// A block that was taken is still there: its free was none.
void pool_put_back(struct pool *pool, const void *block, const struct heap_block *taken);
// Frees all that is left in it.
void pool_end(struct pool *pool);

// In a forked child, after scopes_inherit and heap_stacks_inherit: counts what its own tables have,
// which is what there was at the fork. The block that another thread was at then may be there or
// not.
void pools_inherit(void);

#endif
