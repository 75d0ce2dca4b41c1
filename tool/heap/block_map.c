// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/block_map.h"

#include <sys/mman.h>

#include "tool/base/search.h"
#include "tool/model/source.h"

enum { WORD = 8, SHIFT_WIDE = 4, SHIFT_NARROW = 3 };
static const uint64_t gap_bytes_max = 1 << 20, starts = 0x1111111111111111;
static const uint64_t large_bytes = 1 << 18;  // that a block has which gets a region of its own

// --- regions

static uint64_t end_of(const struct glibc_chunk *chunk) {
    uint64_t address = chunk->address;
    return address + (chunk->size ? chunk->size : 1);  // a block of no bytes has an address
}

static bool is_large(const struct glibc_chunk *chunk) {
    return chunk->size >= large_bytes;
}

static bool begin_region(struct block_map *map, const struct glibc_chunk *chunk) {
    const uint64_t granule = (uint64_t)1 << map->shift;
    struct block_region *region = array_push(&map->regions);
    if (!region) return false;
    uint64_t start = chunk->address / granule * granule, end = end_of(chunk);
    *region = (struct block_region){start, end, 0, map->shift};
    while (is_large(chunk) && (end - 1 - start) >> region->shift >= PLACES_PER_WORD)
        region->shift++;
    return true;
}

static void number_places(struct block_map *map) {
    for (size_t i = 0; i < map->regions.count; i++) {
        struct block_region *region = &map->regions.items[i];
        uint64_t last = (region->end - 1 - region->start) >> region->shift;
        region->place = map->place_count;
        map->place_count += (last / PLACES_PER_WORD + 1) * PLACES_PER_WORD;
        if (region->end > map->high) map->high = region->end;
    }
}

static bool find_regions(struct block_map *map, const struct glibc_chunk *chunks, size_t count) {
    bool is_apart = true;  // the next block is in no region that has begun
    for (size_t i = 0; i < count; i++) {
        const struct glibc_chunk *chunk = &chunks[i];
        uint64_t before = is_apart ? 0 : map->regions.items[map->regions.count - 1].end;
        is_apart = is_apart || is_large(chunk) || chunk->address > before + gap_bytes_max;
        if (is_apart && !begin_region(map, chunk)) return false;
        struct block_region *region = &map->regions.items[map->regions.count - 1];
        if (end_of(chunk) > region->end) region->end = end_of(chunk);
        is_apart = is_large(chunk);
    }
    number_places(map);
    return true;
}

static const struct block_region *region_of(const struct block_map *map, uint64_t address) {
    size_t low;
    search_first(low, map->regions.count, map->regions.items[low].start > address);
    const struct block_region *region = low ? &map->regions.items[low - 1] : NULL;
    return region && address < region->end ? region : NULL;
}

static uint64_t place_in(const struct block_region *region, uint64_t address) {
    return region->place + ((address - region->start) >> region->shift);
}

// --- making it

static void enter(struct block_map *map, const struct glibc_chunk *chunks, size_t count) {
    const struct block_region *region = map->regions.items, *last = region + map->regions.count - 1;
    for (size_t i = 0; i < count; i++) {
        const struct glibc_chunk *chunk = &chunks[i];
        while (region < last && region[1].start <= chunk->address) region++;
        unsigned bits = PLACE_START | (chunk_is_free(chunk) ? 0 : PLACE_USED);
        block_map_set(map, place_in(region, chunk->address), bits);
        const uint64_t granule = (uint64_t)1 << region->shift;
        uint64_t behind = (end_of(chunk) + granule - 1) / granule * granule;
        bool is_last = i + 1 == count || chunks[i + 1].address > behind;
        if (is_last && behind < region->end)
            block_map_set(map, place_in(region, behind), PLACE_START);
    }
}

bool block_map_build(struct block_map *map, const struct glibc_chunk *chunks, size_t count,
                     bool are_all_glibc, struct error *error) {
    *map = (struct block_map){.shift = are_all_glibc ? SHIFT_WIDE : SHIFT_NARROW};
    if (!count) return true;
    if (count > BLOCKS_MOST)
        return error_set(error, "its heap has %zu blocks, which is more than 2^32", count);
    map->low = chunks[0].address;
    if (!find_regions(map, chunks, count)) return error_set(error, "out of memory");
    map->words = source_room(map->place_count / PLACES_PER_WORD * sizeof *map->words, error);
    if (map->words) enter(map, chunks, count);
    return map->words;
}

void block_map_free(struct block_map *map) {
    if (map->words) munmap(map->words, map->place_count / PLACES_PER_WORD * sizeof *map->words);
    map->words = NULL;
    array_free(&map->regions);
}

// --- asking it

// The last start at or before a place of the region. Each region has one at its first block.
static bool find_start(const struct block_map *map, const struct block_region *region,
                       uint64_t place, uint64_t *start) {
    uint64_t at = place / PLACES_PER_WORD;
    unsigned unused = (unsigned)(PLACES_PER_WORD - 1 - place % PLACES_PER_WORD) * PLACE_BITS;
    uint64_t found = (map->words[at] & starts) << unused >> unused;
    while (!found && at > region->place / PLACES_PER_WORD) found = map->words[--at] & starts;
    if (!found) return false;
    unsigned highest = 63 - (unsigned)__builtin_clzll(found);
    *start = at * PLACES_PER_WORD + highest / PLACE_BITS;
    return true;
}

// The word in front of a glibc block holds its size and belongs to no other.
static bool is_header(const struct block_map *map, const struct block_region *region,
                      uint64_t address, uint64_t place) {
    return region->shift == SHIFT_WIDE && address % (2 * WORD) >= WORD &&
           address / (2 * WORD) * (2 * WORD) + 2 * WORD < region->end &&
           block_map_bits(map, place + 1) & PLACE_START;
}

void block_map_prefetch(const struct block_map *map, uint64_t address) {
    const struct block_region *region = map->words ? region_of(map, address) : NULL;
    if (region) __builtin_prefetch(&map->words[place_in(region, address) / PLACES_PER_WORD]);
}

bool block_map_find(const struct block_map *map, uint64_t address, uint64_t *place) {
    if (!block_map_may_have(map, address)) return false;
    const struct block_region *region = region_of(map, address);
    if (!region) return false;
    uint64_t at = place_in(region, address);
    unsigned bits = block_map_bits(map, at);
    if (!(bits & PLACE_START)) {
        if (is_header(map, region, address, at) || !find_start(map, region, at, &at)) return false;
        bits = block_map_bits(map, at);
    }
    *place = at;
    return bits & PLACE_USED;
}

static const struct block_region *region_of_place(const struct block_map *map, uint64_t place) {
    size_t low;
    search_first(low, map->regions.count, map->regions.items[low].place > place);
    return &map->regions.items[low - 1];
}

uint64_t block_map_address(const struct block_map *map, uint64_t place) {
    const struct block_region *region = region_of_place(map, place);
    return region->start + ((place - region->place) << region->shift);
}

uint64_t block_map_end(const struct block_map *map, uint64_t place) {
    const struct block_region *region = region_of_place(map, place);
    uint64_t last = place_in(region, region->end - 1) / PLACES_PER_WORD;
    uint64_t at = place / PLACES_PER_WORD;
    unsigned used = (unsigned)(place % PLACES_PER_WORD + 1) * PLACE_BITS;
    uint64_t found = used < 64 ? (map->words[at] & starts) >> used << used : 0;
    while (!found && at < last) found = map->words[++at] & starts;
    if (!found) return region->end;
    unsigned lowest = (unsigned)__builtin_ctzll(found);
    uint64_t next = at * PLACES_PER_WORD + lowest / PLACE_BITS;
    return region->start + ((next - region->place) << region->shift);
}
