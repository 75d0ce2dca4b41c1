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
#ifndef RUNTIME_API_POOL_H
#define RUNTIME_API_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

// What all pools of a name did (a number of a scope) goes up by so much.
void pool_count_allocs(uint32_t scope, uint64_t count, uint64_t bytes);
void pool_count_frees(uint32_t scope, uint64_t count, uint64_t bytes);

// NULL without memory or room for the name.
struct pool *pool_make(const char *name);
void pool_add(struct pool *pool, const void *block, size_t bytes);
// False: it has no such block. `bytes` (or NULL) gets its size.
bool pool_take(struct pool *pool, const void *block, size_t *bytes);
// A block that was taken is still there: its free was none.
void pool_put_back(struct pool *pool, const void *block, size_t bytes);
// Frees all that is left in it.
void pool_end(struct pool *pool);

#endif
