// SPDX-License-Identifier: Apache-2.0
// What the blocks of each cell (a stack in a thread) are like, up to POOL_BLOCK_MOST bytes, while
// pool_find.c reads a log: first each cell for itself, then those that would share a pool.
#ifndef TOOL_EVENTS_POOL_UNITS_H
#define TOOL_EVENTS_POOL_UNITS_H

#include "tool/events/live_blocks.h"
#include "tool/events/pool_search.h"
#include "tool/model/pool_candidates.h"

struct pool_unit {
    uint64_t allocations, frees, bytes;
    uint64_t live, live_bytes, most_live_bytes;
    uint64_t generation_bytes, most_generation_bytes;  // since all blocks were gone
    uint64_t generations;
    uint64_t late, overlapping, lifo_breaks;
    uint64_t largest;
    bool is_resized, is_unfollowed, is_foreign;  // freed by another thread; later of the stack
    uint32_t slot;
    uint32_t partner;  // the cell whose last block died in the same row of frees, mostly
    uint64_t votes;
    uint64_t usual_size, usual_votes;  // which most blocks have
    // From the second reading on, of the home: the first cell of the stack if threads free each
    // other's blocks, else the cell itself.
    uint32_t home, arena;  // arena: the home that stands for all that share it
    uint64_t home_allocations, home_frees;
    uint64_t usual_allocations, usual_frees, usual_live, most_usual_live;
};

// Blocks of all cells that share an arena.
struct pool_arena {
    uint64_t allocations, frees, bytes;
    uint64_t live, live_bytes, most_live_bytes;
    uint64_t generation_bytes, most_generation_bytes, generations;
    uint64_t room, chunks, most_chunks;  // room: bytes left in the last chunk of this generation
    uint32_t home_count;
    bool is_shared;  // by threads
    bool is_refused;
};

struct pool_units {
    struct pool_unit *units;    // by cell
    struct pool_arena *arenas;  // by home
    size_t count;
    uint32_t *last_dead;   // by thread slot: the cell whose last block died in this row of frees
    uint64_t allocations;  // of the log so far
    bool is_first;         // reading
};

bool pool_units_make(struct pool_units *units, size_t cell_count);
void pool_units_free(struct pool_units *units);

// A block is there, or gone. `is_call`: by a call of free, not only because the log misses one.
void pool_units_allocate(struct pool_units *units, struct live_block *block, uint32_t slot);
void pool_units_release(struct pool_units *units, const struct live_block *block,
                        const struct event *event, bool is_call);

// Which cells share an arena, after the first reading. False without memory.
bool pool_units_join(struct pool_units *units, const struct pool_search *search);
// Before a second reading, of which there may be two: what turned out to be no arena is parted
// between them. False: nothing was.
void pool_units_begin(struct pool_units *units);
bool pool_units_part(struct pool_units *units);

// A cell or home that a pool can be for.
bool pool_unit_can_pool(const struct pool_unit *unit);
bool pool_arena_is_one(const struct pool_arena *arena);

static inline uint64_t pool_in_units(uint64_t size) {
    return size ? (size + POOL_UNIT - 1) & ~(uint64_t)(POOL_UNIT - 1) : POOL_UNIT;
}

// The list of candidates (pool_choose.c). False without memory.
bool pool_choose(const struct pool_units *units, const struct pool_search *search,
                 struct pool_candidates *found);

#endif
