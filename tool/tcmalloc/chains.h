// SPDX-License-Identifier: Apache-2.0
// Chains of free blocks of tcmalloc, outside of spans: those that lists of threads and between
// threads lead to, and those that a thread is moving from one to the other.
//
// A thread that gives blocks back, or asks for some, takes them off one list, waits for a lock, and
// puts them onto another; meanwhile nothing but its registers and its stack leads to them. A chain
// that is found there is believed only if
// - it leads from block to block of one size, none of which is known to be free, and ends,
// - the thread has the addresses of its first block and of its last one, or the last one is that of
//   the slot that was emptied last,
// - the thread has the address of the lists of that size, its own or those between threads,
// - the counts of its cache say the same: so many bytes are in none of its lists (blocks that go
//   back), or its list of that size is empty (blocks that come).
//
// All that is so also of a chain that the thread had a call ago, or of which it waits for the lock,
// while its blocks are in use: that block by block it could be is all that is said of it
// (CHUNK_MOVING), and no block that was moved once counts as free.
//
// A list that has a block less than it counts is believed if the thread has the block that it took,
// which still leads there. One that has another number of blocks than it counts may be moving if
// the thread has it at hand. So are those of a list whose first block may not lead to the second
// yet: then a register has the list as it was before.
#ifndef TOOL_TCMALLOC_CHAINS_H
#define TOOL_TCMALLOC_CHAINS_H

#include "tool/glibc/chunks.h"
#include "tool/proc/memory_reader.h"
#include "tool/tcmalloc/places.h"

// A thread's registers and its stack pointer; 0: not known.
struct tcmalloc_thread {
    const uint64_t *registers;
    size_t register_count;
    uint64_t stack;
};

// A thread's cache that was read.
struct tcmalloc_known_cache {
    uint64_t address;
    int64_t missing_bytes;  // that it counts and none of its lists has
};

struct tcmalloc_chains {
    const struct memory_reader *memory;
    const struct tcmalloc_places *places;
    struct glibc_heap *heap;  // all blocks, ascending
    ARRAY(struct tcmalloc_known_cache) caches;
    uint64_t busy_count;  // threads that may be within a call, by what their registers hold
};

// Returns the block that begins at `address`, or NULL.
struct glibc_chunk *tcmalloc_block_at(const struct glibc_heap *heap, uint64_t address);

// Returns how many used blocks of that size a chain has, up to `tail` where that is given.
// UINT64_MAX: it leads elsewhere.
uint64_t tcmalloc_chain_count(const struct tcmalloc_chains *chains, uint64_t head, uint64_t tail,
                              uint64_t size);

// Marks the blocks of a chain that was counted, but for the first `passed`.
void tcmalloc_chain_mark(const struct tcmalloc_chains *chains, uint64_t head, uint64_t count,
                         uint64_t passed, enum chunk_kind kind);

// Marks the chains that a thread is moving. The lists are marked, all but those of slots that a
// thread may be writing.
void tcmalloc_chains_moving(struct tcmalloc_chains *chains, const struct tcmalloc_thread *thread);

#endif
