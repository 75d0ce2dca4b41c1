// SPDX-License-Identifier: Apache-2.0
// Which block an address lies in, for looking at every word of a process: four bits for each
// granule of the heap (16 bytes), so that one look at memory decides about nearly every word, and a
// heap of 4 GiB takes 128 MiB.
//
//     place   number of a granule, counted through all regions; a block's place is that of its
//             start
//     region  stretch of addresses that blocks fill without large gaps; or one large block, whose
//             granules are a sixteenth of it: it takes a word, and a word that leads to its end
//             finds its start as soon as any other
//
// The bits of a granule: a stretch begins here (a block, or something between blocks), it is a
// block in use, and two that belong to a walk through them.
#ifndef TOOL_HEAP_BLOCK_MAP_H
#define TOOL_HEAP_BLOCK_MAP_H

#include "tool/base/error.h"
#include "tool/glibc/chunks.h"

enum { PLACE_START = 1, PLACE_USED = 2, PLACE_MARKED = 4, PLACE_REFERENCED = 8 };
enum { PLACE_BITS = 4, PLACES_PER_WORD = 16 };
#define BLOCKS_MOST (UINT32_MAX - 2)  // blocks are numbered with 32 bits (tool/heap/graph.h)

struct block_region {
    uint64_t start, end;  // addresses
    uint64_t place;       // of its first granule; a multiple of PLACES_PER_WORD
    uint32_t shift;       // log2 of the granule
};

struct block_map {
    ARRAY(struct block_region) regions;  // ascending
    uint64_t *words;                     // the places' bits
    uint64_t place_count;
    uint64_t low, high;  // no block lies outside of these
    uint32_t shift;      // log2 of the granule of regions with more than one block: 4, or 3 where
                         // blocks need not be glibc's
};

// Of chunks that ascend; `are_all_glibc`: each has the size of the next one in front of that one.
bool block_map_build(struct block_map *map, const struct glibc_chunk *chunks, size_t count,
                     bool are_all_glibc, struct error *error);
void block_map_free(struct block_map *map);

static inline bool block_map_may_have(const struct block_map *map, uint64_t address) {
    return address - map->low < map->high - map->low;
}

static inline unsigned block_map_bits(const struct block_map *map, uint64_t place) {
    const unsigned all = (1u << PLACE_BITS) - 1;
    return (unsigned)(map->words[place / PLACES_PER_WORD] >>
                      (place % PLACES_PER_WORD * PLACE_BITS)) &
           all;
}

static inline void block_map_set(struct block_map *map, uint64_t place, unsigned bits) {
    map->words[place / PLACES_PER_WORD] |= (uint64_t)bits << (place % PLACES_PER_WORD * PLACE_BITS);
}

// Has memory bring what the map has of an address.
void block_map_prefetch(const struct block_map *map, uint64_t address);

// The place of the block in use that the address lies in; false: in none.
bool block_map_find(const struct block_map *map, uint64_t address, uint64_t *place);

uint64_t block_map_address(const struct block_map *map, uint64_t place);

// Where the stretch that begins at a place ends.
uint64_t block_map_end(const struct block_map *map, uint64_t place);

#endif
