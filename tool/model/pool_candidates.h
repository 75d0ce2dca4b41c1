// SPDX-License-Identifier: Apache-2.0
// Where a pool could take the place of malloc and free: stacks whose blocks die together, are freed
// in the reverse order, have one size, or are gone before the next ones come. An event log tells
// (tool/events/pool_find.h); what a pool would do is worked out to the call, for a pool as it is
// described here (examples/documents.c has one in C):
//
//     BUFFER  a buffer on the stack, as large as the largest block
//     ARENA   chunks that blocks are cut from one after the other, in units of 16 bytes; no block
//             is freed; when the last one dies, the first chunk is begun again
//     LIFO    the same, and what was allocated last is given back first
//     SLAB    chunks of places of one size, with a list of those that are free
//
// Blocks above POOL_BLOCK_MOST bytes stay with malloc, and so do those of a slab's stack that have
// another size. The first POOL_CHUNK_HEAD bytes of a chunk are the pool's own. Chunks are kept to
// the end. A thread has a pool of its own, except where threads free each other's blocks.
#ifndef TOOL_MODEL_POOL_CANDIDATES_H
#define TOOL_MODEL_POOL_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_BLOCK_MOST 4096u
#define POOL_UNIT 16u
#define POOL_CHUNK_BYTES 32768u
#define POOL_CHUNK_HEAD 16u
// Allocations within which the block of a BUFFER is freed.
#define POOL_SOON 64u
// Blocks that are followed at one time, which is what bounds memory (docs/howto/pools.md).
#define POOL_FOLLOWED_MOST (UINT64_C(2) << 20)

enum pool_kind { POOL_NONE, POOL_BUFFER, POOL_ARENA, POOL_LIFO, POOL_SLAB, POOL_KINDS };

struct pool_candidate {
    enum pool_kind kind;
    size_t first_member, member_count;  // its stacks, the most calls first
    uint64_t pool_count;                // one a thread
    bool is_shared;        // threads free each other's blocks: one pool with a lock for all
    uint64_t blocks;       // that the pools would give
    uint64_t calls_gone;   // of malloc and free, without those for chunks
    int64_t bytes_gone;    // that malloc gives over time, likewise
    uint64_t chunks;       // in all pools, at most
    uint64_t kept_bytes;   // in chunks, or in a buffer
    uint64_t live_bytes;   // most that the blocks had at one time; of pools, their sum
    uint64_t block_bytes;  // of SLAB
    uint64_t generations;  // of ARENA: how often all blocks were gone
};

struct pool_member {
    uint32_t stack;  // its number (struct stack)
    uint64_t calls;
};

struct pool_candidates {
    struct pool_candidate *list;  // the most calls first
    size_t count;
    struct pool_member *members;
    uint64_t events, calls;      // of the log; calls: allocations and frees
    uint64_t calls_gone;         // of all candidates
    uint64_t followed_blocks;    // at one time, at most
    uint64_t followed_limit;     // POOL_FOLLOWED_MOST
    uint64_t unfollowed_stacks;  // left out since they had most blocks when there were too many
    uint64_t unfollowed_blocks;  // of these
    uint64_t resized_stacks;     // whose blocks realloc makes or takes: left out
    bool is_partial;             // events are missing in the log
};

#endif
