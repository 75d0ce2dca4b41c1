// SPDX-License-Identifier: Apache-2.0
// Hash table from a key that the caller keeps in an array to its index there: open addressing, 8
// bytes a slot. The caller walks the candidates with an equal hash and compares the keys itself:
//
//     struct index_probe probe = index_probe_start(&table, hash);
//     for (uint32_t index; index_probe_next(&table, &probe, &index);)
//         if (items[index] matches) return index;
//     index_table_insert(&table, hash, new_index)
//
// Hashes are seeded by the caller with index_table_seed(), so that a made-up file cannot aim for
// collisions.
#ifndef TOOL_MODEL_INDEX_TABLE_H
#define TOOL_MODEL_INDEX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_slot {
    uint32_t hash;
    uint32_t index_plus_1;  // 0: empty
};

struct index_table {
    struct index_slot *slots;
    size_t mask;  // slot count - 1, a power of two minus one; 0: nothing allocated yet
    size_t count;
};

struct index_probe {
    size_t at;
    uint32_t hash;
};

struct index_probe index_probe_start(const struct index_table *table, uint64_t hash);
bool index_probe_next(const struct index_table *table, struct index_probe *probe, uint32_t *index);

// Makes room for so many more entries at once. False without memory.
bool index_table_reserve(struct index_table *table, size_t more);

// False without memory.
bool index_table_insert(struct index_table *table, uint64_t hash, uint32_t index);
void index_table_free(struct index_table *table);

// A number that nobody can guess, the same during one run.
uint64_t index_table_seed(void);

// Mixes two words so that every bit of them reaches every bit of the result.
static inline uint64_t hash_mix(uint64_t first, uint64_t second) {
    const uint64_t factor = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd
    enum { HALF_BITS = 32 };
    uint64_t hash = (first ^ (second >> HALF_BITS) ^ (second << HALF_BITS)) * factor;
    hash ^= hash >> HALF_BITS;
    hash *= factor;
    return hash ^ (hash >> HALF_BITS);
}

#endif
