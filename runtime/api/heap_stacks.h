// SPDX-License-Identifier: Apache-2.0
// What an allocator by name (--wrap) holds by the stacks that asked for it, in the recording
// (struct cairn_heap_stack), beside its sums by name (struct cairn_scope). The peak of a whole heap
// is kept lazily: who leaves a new highest total moves the epoch, and an entry saves what it held
// before it changes for the first time in an epoch.
//
// What entries held at snapshots is kept as of cells (stack/values.h), in a log of the heap's own.
// A heap that changes much makes that snapshots are taken, as malloc's does (record/snapshots.h).
//
// Whoever finds or changes entries holds the lock of their heap (pool.h, arena.h).
#ifndef RUNTIME_API_HEAP_STACKS_H
#define RUNTIME_API_HEAP_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/api/addresses.h"
#include "runtime/live/live.h"
#include "runtime/stack/values.h"
#include "runtime/sys/region.h"

struct lock;  // lock.h

struct heap_stacks {
    uint32_t scope;       // the heap's
    uint64_t live_bytes;  // of all its stacks
    uint64_t live_blocks;
    uint64_t allocated_bytes, calls;
    uint32_t points;         // heap_points.h; 0: none
    uint32_t births;         // allocations, also those before a fork: ages count in them
    struct addresses known;  // entries by stack and scope
    struct value_log log;    // what entries held at snapshots
    // The next snapshot is due when the heap holds so much, or so much was allocated and freed.
    uint64_t next_high_bytes, next_churn_bytes;
};

// A block that is taken out of its heap.
struct heap_block {
    size_t bytes;
    uint32_t stack;   // as heap_stacks_find said
    uintptr_t arena;  // of heaps that have them
    struct birth birth;
};

// False without memory.
bool heap_stacks_open(struct heap_stacks *heap, uint32_t scope);

// The entry of blocks that a stack (a cell) asked for and that count for `scope`, the heap's or
// that of a name of arenas; 0: there is no room for it.
uint32_t heap_stacks_find(struct heap_stacks *heap, uint32_t cell, uint32_t scope);

// When the block was born, for who frees it.
struct birth heap_stacks_alloc(struct heap_stacks *heap, uint32_t entry, uint64_t bytes);
void heap_stacks_free(struct heap_stacks *heap, uint32_t entry, uint64_t bytes, struct birth birth);
// The free was none.
void heap_stacks_put_back(struct heap_stacks *heap, uint32_t entry, uint64_t bytes,
                          struct birth birth);

// A block of an entry counts for another scope of its heap from now on; at the heap's peak, too,
// where nothing of the entry has changed since. The new entry; the old one where there is no room.
uint32_t heap_stacks_move(struct heap_stacks *heap, uint32_t entry, uint32_t scope, uint64_t bytes);

// Where the entries are, in the recording that is open now.
struct region *heap_stacks_region(void);

// In a forked child, once its recording has what its parent's had: nothing is held so far. Then
// each heap tells what its own table has, which is what there was at the fork (pools_inherit,
// arenas_inherit). `lock`: the heap's; true: the thread that forked has it, since a signal handler
// forked, and goes on with what it is at. Else the lock is nobody's, and the caller puts its tables
// in order (addresses_renew): another thread may have been at them while the fork copied them.
void heap_stacks_inherit(void);
bool heap_stacks_inherit_heap(struct heap_stacks *heap, struct lock *lock);
void heap_stacks_inherit_block(struct heap_stacks *heap, uint32_t entry, uint64_t bytes);

#endif
