// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/reach.h"

#include <string.h>
#include <sys/mman.h>

#include "tool/base/search.h"
#include "tool/heap/roots.h"
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

// Has memory bring what the map has of an address.
static void block_map_prefetch(const struct block_map *map, uint64_t address) {
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

enum {
    PIECE_BYTES = 1 << 20,
    WINDOW_PLACES = 1 << 22,  // 64 MiB of heap
    TURNS_AHEAD = 4,
};

// --- looking through memory

bool core_scan_open(struct core_scan *scan) {
    bool is_read = !core_lies_here(scan->core) || scan->is_ascending;
    if (is_read) scan->scratch = malloc(PIECE_BYTES);
    return !is_read || scan->scratch;
}

void core_scan_close(struct core_scan *scan) {
    free(scan->scratch);
    scan->scratch = NULL;
}

// The words that wait are a ring.
static bool see_later(struct core_scan *scan, uint64_t at, uint64_t value) {
    struct core_word *slot = &scan->waiting[(scan->first + scan->waiting_count) % WORDS_AHEAD];
    const struct core_word before = *slot;
    *slot = (struct core_word){at, value, scan->from};
    block_map_prefetch(scan->map, value);
    if (scan->waiting_count < WORDS_AHEAD) {
        scan->waiting_count++;
        return true;
    }
    scan->first = (scan->first + 1) % WORDS_AHEAD;
    return scan->see(scan->context, &before);
}

bool core_scan_finish(struct core_scan *scan) {
    for (; scan->waiting_count; scan->waiting_count--) {
        const struct core_word word = scan->waiting[scan->first];
        scan->first = (scan->first + 1) % WORDS_AHEAD;
        if (!scan->see(scan->context, &word)) return false;
    }
    return true;
}

static bool see_words(struct core_scan *scan, uint64_t at, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i + WORD <= size; i += WORD) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        if (block_map_may_have(scan->map, word) && !see_later(scan, at + i, word)) return false;
    }
    return true;
}

static void read_ahead(struct core_scan *scan, uint64_t at) {
    struct core_image core = *scan->core;
    if (core_lies_here(&core)) core.map = NULL;
    scan->start = at;
    scan->end = at + core_piece(&core, at, scan->scratch, PIECE_BYTES, &scan->bytes);
}

static bool find_segment(struct core_scan *scan, uint64_t at) {
    const struct memory_segment *segment = core_segment_of(scan->core, at);
    if (!segment || at - segment->start >= segment->bytes) return false;
    scan->start = segment->start;
    scan->end = segment->start + segment->bytes;
    scan->bytes = scan->core->map + segment->offset;
    return true;
}

// Blocks follow each other in few segments, which need not be looked for each time.
static size_t find_piece(struct core_scan *scan, uint64_t at, size_t wanted,
                         const uint8_t **bytes) {
    const struct core_image *core = scan->core;
    if (!core_lies_here(core) && !scan->is_ascending)
        return core_piece(core, at, scan->scratch, wanted, bytes);
    if (at < scan->start || at >= scan->end) {
        if (scan->is_ascending)
            read_ahead(scan, at);
        else if (!find_segment(scan, at))
            return 0;
        if (scan->start == scan->end) return 0;
    }
    *bytes = scan->bytes + (at - scan->start);
    return scan->end - at < wanted ? (size_t)(scan->end - at) : wanted;
}

bool core_scan_on(struct core_scan *scan, uint64_t start, uint64_t end) {
    for (uint64_t at = (start + WORD - 1) / WORD * WORD; at < end;) {
        at = core_first_there(scan->core, at, end);
        if (at == end) break;
        size_t wanted = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
        const uint8_t *bytes;
        size_t size = find_piece(scan, at, wanted, &bytes);
        if (!size) return true;  // cut off
        if (!see_words(scan, at, bytes, size)) return false;
        if (!scan->is_ascending) core_place_done(scan->core, size, &scan->places);
        at += (size + WORD - 1) / WORD * WORD;
    }
    return true;
}

bool core_scan_words(struct core_scan *scan, uint64_t start, uint64_t end) {
    return core_scan_on(scan, start, end) && core_scan_finish(scan);
}

// --- marking

struct window {
    ARRAY(uint32_t) places;  // marked and not looked through yet; counted from the window's first
};

struct marking {
    struct core_reach *reach;
    struct core_scan scan;
    struct window *windows;
    size_t window_count;
};

static bool mark(void *context, const struct core_word *word) {
    struct marking *marking = context;
    struct block_map *map = &marking->reach->map;
    uint64_t place;
    if (!block_map_find(map, word->value, &place) || block_map_bits(map, place) & PLACE_MARKED)
        return true;
    block_map_set(map, place, PLACE_MARKED);
    uint32_t *slot = array_push(&marking->windows[place / WINDOW_PLACES].places);
    if (slot) *slot = (uint32_t)(place % WINDOW_PLACES);
    return slot;
}

static bool mark_registers(struct marking *marking) {
    const struct core_image *core = marking->reach->core;
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        for (uint32_t k = 0; k < thread->register_count; k++)
            if (!mark(marking, &(struct core_word){.value = thread->registers[k]})) return false;
    }
    return true;
}

// Marks what threads within a call move: the allocator's own lists may be all that leads there.
static bool mark_moving(struct marking *marking) {
    const struct glibc_heap *heap = &marking->reach->heap;
    for (size_t i = 0; heap->other.moving_blocks && i < heap->chunks.count; i++)
        if (heap->chunks.items[i].kind == CHUNK_MOVING &&
            !mark(marking, &(struct core_word){.value = heap->chunks.items[i].address}))
            return false;
    return true;
}

static bool mark_roots(struct marking *marking) {
    const struct spans *roots = &marking->reach->roots;
    for (size_t i = 0; i < roots->items.count; i++)
        if (!core_scan_words(&marking->scan, roots->items.items[i].start,
                             roots->items.items[i].end))
            return false;
    return true;
}

// Blocks are looked through in the order in which they were not found: the one that is some turns
// away is brought meanwhile.
static void bring(const struct marking *marking, const struct window *window, uint64_t first) {
    const struct core_scan *scan = &marking->scan;
    if (window->places.count < TURNS_AHEAD) return;
    uint32_t place = window->places.items[window->places.count - TURNS_AHEAD];
    uint64_t address = block_map_address(scan->map, first + place);
    if (address - scan->start < scan->end - scan->start)
        __builtin_prefetch(scan->bytes + (address - scan->start));
}

// Everything that is pending in a window, and what becomes so meanwhile.
static bool drain(struct marking *marking, struct window *window, bool *was_any) {
    const struct block_map *map = &marking->reach->map;
    const uint64_t first = (uint64_t)(window - marking->windows) * WINDOW_PLACES;
    while (window->places.count) {
        uint64_t place = first + window->places.items[--window->places.count];
        bring(marking, window, first);
        if (!core_scan_on(&marking->scan, block_map_address(map, place), block_map_end(map, place)))
            return false;
        if (!window->places.count && !core_scan_finish(&marking->scan)) return false;
        *was_any = true;
    }
    return true;
}

static bool propagate(struct marking *marking) {
    for (bool was_any = true; was_any;) {
        was_any = false;
        for (size_t i = 0; i < marking->window_count; i++)
            if (!drain(marking, &marking->windows[i], &was_any)) return false;
    }
    return true;
}

static bool mark_all(struct core_reach *reach) {
    struct marking marking = {.reach = reach};
    marking.scan = (struct core_scan){
        .core = reach->core, .map = &reach->map, .see = mark, .context = &marking};
    marking.window_count = (size_t)(reach->map.place_count / WINDOW_PLACES) + 1;
    marking.windows = calloc(marking.window_count, sizeof *marking.windows);
    bool is_ok = marking.windows && core_scan_open(&marking.scan) && mark_registers(&marking) &&
                 mark_moving(&marking) && mark_roots(&marking) && propagate(&marking);
    for (size_t i = 0; marking.windows && i < marking.window_count; i++)
        array_free(&marking.windows[i].places);
    free(marking.windows);
    core_scan_close(&marking.scan);
    return is_ok;
}

// --- references among leaked blocks

bool core_scan_leaked(const struct core_reach *reach, struct core_scan *scan) {
    size_t count = reach->map.words ? reach->heap.chunks.count : 0;
    for (size_t i = 0; i < count; i++) {
        const struct glibc_chunk *chunk = &reach->heap.chunks.items[i];
        bool is_block =
            !chunk_is_free(chunk) && block_map_find(&reach->map, chunk->address, &scan->from);
        if (!is_block || block_map_bits(&reach->map, scan->from) & PLACE_MARKED) continue;
        if (!core_scan_on(scan, chunk->address, chunk->address + chunk->size)) return false;
    }
    return core_scan_finish(scan);
}

static bool refer(void *context, const struct core_word *word) {
    struct block_map *map = context;
    uint64_t place;
    if (block_map_find(map, word->value, &place) && place != word->from)
        block_map_set(map, place, PLACE_REFERENCED);
    return true;
}

bool core_reach_settle(struct core_reach *reach, struct error *error) {
    struct core_scan scan = {
        .core = reach->core, .map = &reach->map, .see = refer, .context = &reach->map};
    bool is_ok = core_scan_open(&scan);
    if (is_ok) core_scan_leaked(reach, &scan);
    core_scan_close(&scan);
    reach->is_marked = is_ok;
    return is_ok || error_set(error, "out of memory");
}

// --- all of it

bool core_reach_open(const struct core_image *core, struct glibc_heap *heap, bool are_all_glibc,
                     const struct spans *others, struct core_reach *reach, struct error *error) {
    *reach = (struct core_reach){.core = core, .heap = *heap, .are_all_glibc = are_all_glibc};
    *heap = (struct glibc_heap){0};
    bool is_ok = core_find_roots(core, &reach->heap, others, &reach->roots) ||
                 error_set(error, "out of memory");
    is_ok = is_ok && block_map_build(&reach->map, reach->heap.chunks.items,
                                     reach->heap.chunks.count, are_all_glibc, error);
    if (!is_ok) core_reach_close(reach);
    return is_ok;
}

bool core_reach_mark(struct core_reach *reach, struct error *error) {
    if (reach->map.words && !mark_all(reach)) return error_set(error, "out of memory");
    return core_reach_settle(reach, error);
}

void core_reach_drop_chunks(struct core_reach *reach) {
    array_free(&reach->heap.chunks);
}

void core_reach_close(struct core_reach *reach) {
    block_map_free(&reach->map);
    spans_free(&reach->roots);
    glibc_heap_free(&reach->heap);
}

enum core_reached core_reach_of(const struct core_reach *reach, uint64_t address) {
    uint64_t place;
    if (!reach->map.words || !block_map_find(&reach->map, address, &place)) return CORE_NO_BLOCK;
    unsigned bits = block_map_bits(&reach->map, place);
    if (bits & PLACE_MARKED) return CORE_REACHABLE;
    return bits & PLACE_REFERENCED ? CORE_LEAKED : CORE_UNREFERENCED;
}
