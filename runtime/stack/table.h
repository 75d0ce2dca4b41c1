// SPDX-License-Identifier: Apache-2.0
// A thread's own hash table from stack hash to cell id.
//
// Linear hashing: the table grows one bucket at a time, in order, so no insertion ever rehashes
// more than one bucket (doubling a million entries at once would pause the program 10-20 ms). A
// bucket is one cache line of five entries; the few that overflow chain to a further line.
// Identity is 64 bits here plus 32 in the cell (`check`), see hash.h.
// One owner, no locks. An insertion abandoned half-way (a signal handler that jumps out) can lose
// entries, never memory safety: a lost stack is interned again as a second cell.
#ifndef RUNTIME_STACK_TABLE_H
#define RUNTIME_STACK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/arena.h"

enum { BUCKET_ENTRIES = 5, TABLE_SEGMENTS = 24, TABLE_FIRST_BUCKETS = 8 };

struct bucket {
    uint64_t hash[BUCKET_ENTRIES];
    uint32_t id[BUCKET_ENTRIES];  // 0: free; filled front to back
    uint32_t overflow;            // number of a bucket in the pool + 1, or 0
};

struct table {
    struct bucket *segments[TABLE_SEGMENTS];  // 8, 8, 16, 32, … buckets
    struct bucket *pool[TABLE_SEGMENTS];      // overflow buckets, the same sizes
    uint32_t bucket_count;                    // base + buckets split in this round
    uint32_t base;                            // buckets at the start of this round, a power of two
    uint32_t pool_count;
    uint32_t pool_free;  // first free overflow bucket + 1, chained by overflow
    uint32_t entry_count;
};

bool table_init(struct table *table, struct arena *arena);

// Buckets lie in segments so that growing never moves them.
static inline struct bucket *table_bucket_at(struct bucket *const *segments, uint32_t index) {
    if (index < TABLE_FIRST_BUCKETS) return &segments[0][index];
    unsigned top = 31u - (unsigned)__builtin_clz(index);
    return &segments[top - 2][index & ~(1u << top)];  // 8..15: 1, 16..31: 2, …
}

static inline uint32_t table_index(const struct table *table, uint64_t hash) {
    uint32_t index = (uint32_t)hash & (table->base * 2 - 1);
    return index < table->bucket_count ? index : index - table->base;
}

// The id entered under `hash` for which `is_it` holds, or 0. More than one id per hash is possible.
uint32_t table_find(const struct table *table, uint64_t hash,
                    bool (*is_it)(uint32_t id, uint32_t check), uint32_t check);

// Enters an id. False without memory.
bool table_insert(struct table *table, struct arena *arena, uint64_t hash, uint32_t id);

#endif
