// SPDX-License-Identifier: Apache-2.0
// Which blocks of a process can still be reached: from roots (registers, stacks, data of modules
// and other memory of the process), through blocks in use. The others are leaked; leaked blocks
// that no other leaked block refers to are unreferenced: the words are chap's.
//
// A reference is an aligned word that leads to a block's start or into it. So it is conservative:
// a number that looks like an address keeps a block reachable, and a pointer that is kept in
// another form (with bits of its own, or not aligned) is not seen.
//
// Blocks are searched window by window of the heap, so that a core may be larger than memory.
//
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
#ifndef TOOL_HEAP_REACH_H
#define TOOL_HEAP_REACH_H

#include "tool/base/error.h"
#include "tool/base/spans.h"
#include "tool/glibc/chunks.h"
#include "tool/heap/image.h"

enum { PLACE_START = 1, PLACE_USED = 2, PLACE_MARKED = 4, PLACE_REFERENCED = 8 };
enum { PLACE_BITS = 4, PLACES_PER_WORD = 16 };
#define BLOCKS_MOST (UINT32_MAX - 2)  // blocks are numbered with 32 bits (tool/heap/references.h)

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

// The place of the block in use that the address lies in; false: in none.
bool block_map_find(const struct block_map *map, uint64_t address, uint64_t *place);

uint64_t block_map_address(const struct block_map *map, uint64_t place);

// Where the stretch that begins at a place ends.
uint64_t block_map_end(const struct block_map *map, uint64_t place);

struct core_reach {
    const struct core_image *core;
    struct glibc_heap heap;  // every block that is known, recorded ones among them
    struct spans roots;
    struct block_map map;
    bool are_all_glibc;   // its blocks; others are known from the recording alone
    bool is_marked;       // reachable blocks are marked
    uint64_t edges_most;  // of a graph (references.h); 0: as many as it holds of itself
};

// The list of its chunks goes, twelve bytes each; its map stays.
void core_reach_drop_chunks(struct core_reach *reach);

// Takes over the heap; nothing is marked yet. `others` (settled) is memory that refers to nothing:
// the recording. `are_all_glibc`: the heap's chunks are as glibc_heap_read found them.
bool core_reach_open(const struct core_image *core, struct glibc_heap *heap, bool are_all_glibc,
                     const struct spans *others, struct core_reach *reach, struct error *error);
void core_reach_close(struct core_reach *reach);

// Finds out which blocks are reachable, and which leaked ones others refer to.
bool core_reach_mark(struct core_reach *reach, struct error *error);

enum core_reached { CORE_REACHABLE, CORE_LEAKED, CORE_UNREFERENCED, CORE_NO_BLOCK };

// What became of the block in use that the address lies in; of a `reach` that is marked.
enum core_reached core_reach_of(const struct core_reach *reach, uint64_t address);

// An aligned word of memory that may lead to a block.
struct core_word {
    uint64_t at, value;
    uint64_t from;  // what the scan's `from` was there
};
enum { WORDS_AHEAD = 32 };

// Goes through memory: calls `see` for each word that may lead to a block. Words wait until others
// were found behind them, while memory brings what the map has of them; their order stays.
struct core_scan {
    const struct core_image *core;
    const struct block_map *map;
    bool (*see)(void *context, const struct core_word *word);  // false: no memory, or enough seen
    void *context;
    uint64_t from;      // the caller's, for `see`
    bool is_ascending;  // nearly all of memory is looked through, in order: it is read, not mapped
    uint64_t places;    // for core_place_done
    uint8_t *scratch;   // for what is read
    uint64_t start, end;  // addresses of what was read or of the last segment, and its bytes
    const uint8_t *bytes;
    struct core_word waiting[WORDS_AHEAD];
    unsigned first, waiting_count;
};
bool core_scan_open(struct core_scan *scan);
void core_scan_close(struct core_scan *scan);

// False if `see` was.
bool core_scan_words(struct core_scan *scan, uint64_t start, uint64_t end);

// The same, but the last words go on waiting: for the next call, or core_scan_finish.
bool core_scan_on(struct core_scan *scan, uint64_t start, uint64_t end);
bool core_scan_finish(struct core_scan *scan);

// Goes through the leaked blocks; `from` is the place of each. False if `see` was.
bool core_scan_leaked(const struct core_reach *reach, struct core_scan *scan);

// Called once the reachable blocks are marked: notes which leaked ones others refer to.
bool core_reach_settle(struct core_reach *reach, struct error *error);

#endif
