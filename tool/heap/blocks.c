// SPDX-License-Identifier: Apache-2.0
// A block in eight bytes, from the highest bit on:
//
//     19  where it begins in the 4 MiB of its leaf, in eights
//     20  its size; all ones: it is found in the list of large ones
//     25  its cell
//
// So the items of a leaf are in order as numbers.
#include "tool/heap/blocks.h"

#include <elf.h>
#include <string.h>

#include "format/live_map.h"

#include "tool/base/search.h"

enum { LEAF_GRANULES_MOST = 1 << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT), LEAF_BYTES_MOST = 1 << 21 };

enum { CELL_BITS = 25, SIZE_BITS = 20, ADDRESS_SHIFT = 3 };
#define SIZE_LARGE ((1u << SIZE_BITS) - 1)
#define LEAF_BYTES ((uint64_t)1 << LIVE_LEAF_SHIFT)

// One pass over the map.
struct reading {
    const struct core_image *core;
    struct core_blocks *blocks;
    size_t cell_count;
    const struct spans *begins;  // NULL: everywhere
    bool is_wide;
    uint32_t top_count;
    uint64_t places;  // for core_place_done
    uint64_t mid[LIVE_MID_COUNT];
    union {
        uint32_t narrow[LEAF_GRANULES_MOST];
        uint64_t wide[LEAF_GRANULES_MOST];
    } leaf;
};

enum { TOP_COUNT_MOST = 1 << (LIVE_ADDRESS_BITS_AARCH64 - LIVE_MID_SHIFT) };

static uint32_t top_count_of(uint32_t machine) {
    bool is_arm = machine == EM_AARCH64;
    return 1u << ((is_arm ? LIVE_ADDRESS_BITS_AARCH64 : LIVE_ADDRESS_BITS_X86_64) - LIVE_MID_SHIFT);
}

static uint32_t granule_shift(const struct reading *reading) {
    return reading->is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
}

static uint64_t slot_bytes(const struct reading *reading) {
    return reading->is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
}

// Whether the block is in a leaf that has begun, or one begins with it. The blocks at odd multiples
// of 8 come behind all others: they may begin with the leaf that those ended with.
static bool begin_leaf(struct core_blocks *blocks, uint64_t address) {
    const uint64_t start = address / LEAF_BYTES * LEAF_BYTES;
    const uint64_t offset = address % LEAF_BYTES >> ADDRESS_SHIFT;
    const size_t count = blocks->leaves.count, items = blocks->items.count;
    bool is_behind = items && blocks->items.items[items - 1] >> (SIZE_BITS + CELL_BITS) < offset;
    if (is_behind && count && blocks->leaves.items[count - 1].start == start) return true;
    struct core_block_leaf *leaf = array_push(&blocks->leaves);
    if (leaf) *leaf = (struct core_block_leaf){start, blocks->items.count};
    return leaf;
}

static bool push_block(struct core_blocks *blocks, const struct core_block *block) {
    bool is_large = block->size >= SIZE_LARGE || block->cell >> CELL_BITS;
    struct core_block *large = is_large ? array_push(&blocks->large) : NULL;
    if (large) *large = *block;
    if ((is_large && !large) || !begin_leaf(blocks, block->address)) return false;
    uint64_t *item = array_push(&blocks->items);
    uint64_t offset = block->address % LEAF_BYTES >> ADDRESS_SHIFT;
    uint64_t packed =
        is_large ? (uint64_t)SIZE_LARGE << CELL_BITS : block->size << CELL_BITS | block->cell;
    if (item) *item = offset << (SIZE_BITS + CELL_BITS) | packed;
    return item;
}

// Whether some of what is asked for lies there.
static bool is_asked_for(const struct reading *reading, uint64_t start, uint64_t end) {
    const struct spans *begins = reading->begins;
    size_t low;
    if (!begins) return true;
    search_first(low, begins->items.count, begins->items.items[low].end > start);
    return low < begins->items.count && begins->items.items[low].start < end;
}

static bool add_block(struct reading *reading, uint64_t address, uint32_t cell, uint64_t size) {
    const uint64_t most = 1ull << LIVE_ADDRESS_BITS_AARCH64;
    if (!is_asked_for(reading, address, address + 1)) return true;
    if (!cell || cell >= reading->cell_count || size >= most) {
        reading->blocks->rejected_count++;
        return true;
    }
    const struct core_block block = {address, size, cell};
    if (!push_block(reading->blocks, &block)) return false;
    reading->blocks->bytes += size;
    return true;
}

// A slot that extends the one before it, which may lie in the leaf before.
static uint64_t extension(const struct reading *reading, uint64_t origin, uint64_t next_granule) {
    uint64_t value = 0;
    core_read(reading->core, origin + next_granule * slot_bytes(reading), &value,
              slot_bytes(reading));
    return value;
}

// Tells that a word may be a chunk's header: behind a free that was not seen it is anything.
static bool is_chunk(const struct reading *reading, uint64_t address, uint64_t header) {
    enum { FLAGS = 7, ALIGNMENT = 16, LEAST = 32, LARGE = 128 << 10 };
    const uint64_t bytes = header & ~(uint64_t)FLAGS;
    if (bytes % ALIGNMENT || bytes < LEAST) return false;
    return bytes < LARGE || reading->begins ||
           (bytes <= UINT64_MAX - address &&
            core_segment_of(reading->core, address + bytes - LEAST));
}

// glibc's chunk header tells how much room the block has; some of it was not asked for.
static bool add_narrow(struct reading *reading, uint64_t origin, uint64_t granule, uint32_t slot,
                       bool *is_extended) {
    const uint64_t flags = 7, header_bytes = 8, half_bytes = 16;
    uint64_t half = (slot >> LIVE_HALF_SHIFT & 1) * half_bytes, header;
    uint64_t address = (granule << LIVE_NARROW_SHIFT) + half, slack = slot & LIVE_SLACK_ESCAPE;
    *is_extended = slack == LIVE_SLACK_ESCAPE;
    if (*is_extended) slack = LIVE_SLACK_BASE + extension(reading, origin, granule + 1);
    if (!is_asked_for(reading, address, address + 1)) return true;
    bool is_there = core_read(reading->core, address - header_bytes, &header, sizeof header);
    is_there = is_there && is_chunk(reading, address, header);
    uint64_t room = is_there ? (header & ~flags) - header_bytes : 0;
    if (!is_there || slack > room) {
        reading->blocks->rejected_count++;
        return true;
    }
    return add_block(reading, address, slot >> LIVE_ID_SHIFT, room - slack);
}

static bool add_wide(struct reading *reading, uint64_t origin, uint64_t granule, uint64_t slot,
                     uint64_t odd, bool *is_extended) {
    uint64_t size = slot >> 32;
    *is_extended = size == LIVE_SIZE_ESCAPE;
    if (*is_extended) size = extension(reading, origin, granule + 1);
    return add_block(reading, (granule << LIVE_WIDE_SHIFT) + odd, (uint32_t)slot, size);
}

static bool is_escape(const struct reading *reading, uint64_t slot) {
    return reading->is_wide ? slot >> 32 == LIVE_SIZE_ESCAPE
                            : (slot & LIVE_SLACK_ESCAPE) == LIVE_SLACK_ESCAPE;
}

// The slots of the 4 MiB from `start` on; `odd` is 8 for blocks at odd multiples of 8.
static bool read_leaf(struct reading *reading, uint64_t origin, uint64_t start, uint64_t odd) {
    uint64_t first = start >> granule_shift(reading);
    uint32_t count = 1u << (LIVE_LEAF_SHIFT - granule_shift(reading));
    uint64_t at = origin + first * slot_bytes(reading), before = 0;
    if (!spans_add(&reading->blocks->map, at, at + count * slot_bytes(reading))) return false;
    if (!core_read(reading->core, at, &reading->leaf, count * slot_bytes(reading))) {
        reading->blocks->missing_leaves++;
        return true;
    }
    core_read(reading->core, at - slot_bytes(reading), &before, slot_bytes(reading));
    core_place_done(reading->core, 1 << LIVE_LEAF_SHIFT, &reading->places);
    bool is_extended = is_escape(reading, before);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = reading->is_wide ? reading->leaf.wide[i] : reading->leaf.narrow[i];
        bool is_extension = is_extended;
        is_extended = false;
        if (!slot || is_extension) continue;
        bool is_ok = reading->is_wide
                         ? add_wide(reading, origin, first + i, slot, odd, &is_extended)
                         : add_narrow(reading, origin, first + i, (uint32_t)slot, &is_extended);
        if (!is_ok) return false;
    }
    return true;
}

static bool read_mid(struct reading *reading, uint64_t mid, uint32_t top) {
    uint64_t start = (uint64_t)(top % reading->top_count) << LIVE_MID_SHIFT;
    uint64_t odd = top >= reading->top_count ? sizeof(uint64_t) : 0;
    if (!core_read(reading->core, mid, reading->mid, sizeof reading->mid)) {
        reading->blocks->missing_leaves++;
        return true;
    }
    for (uint64_t i = 0; i < LIVE_MID_COUNT; i++) {
        uint64_t from = start | i << LIVE_LEAF_SHIFT;
        if (!is_asked_for(reading, from, from + LEAF_BYTES)) continue;
        if (reading->mid[i] && !read_leaf(reading, reading->mid[i], from, odd)) return false;
    }
    return true;
}

static bool read_tops(struct reading *reading, uint64_t address, struct error *error) {
    uint32_t count = reading->is_wide ? 2 * reading->top_count : reading->top_count;
    uint64_t tops[2 * TOP_COUNT_MOST];
    if (!core_read(reading->core, address, tops, count * sizeof *tops))
        return error_set(error, "the map of live blocks is not in it");
    // Places without blocks share one mid that stays empty; the library holds it, so it is there.
    uint64_t known_empty = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!tops[i] || tops[i] == known_empty) continue;
        size_t before = reading->blocks->items.count;
        if (!read_mid(reading, tops[i], i)) return error_set(error, "out of memory");
        if (reading->blocks->items.count == before) known_empty = tops[i];
    }
    return true;
}

// --- their order

static int compare_addresses(const void *a, const void *b) {
    const struct core_block *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static int compare_items(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int compare_leaves(const void *a, const void *b) {
    const struct core_block_leaf *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static bool are_ascending(const struct core_blocks *blocks) {
    for (size_t i = 1; i < blocks->leaves.count; i++)
        if (blocks->leaves.items[i - 1].start >= blocks->leaves.items[i].start) return false;
    return true;
}

static size_t end_of_leaf(const struct core_blocks *blocks, size_t leaf) {
    return leaf + 1 < blocks->leaves.count ? blocks->leaves.items[leaf + 1].first
                                           : blocks->items.count;
}

// How many items the leaf has that begins with number `first`: `leaves` as they were read.
static size_t count_from(const struct core_blocks *blocks, size_t first) {
    size_t low;
    search_first(low, blocks->leaves.count, blocks->leaves.items[low].first >= first);
    return end_of_leaf(blocks, low) - first;
}

// Copies the items to `items` in the order of `leaves`, which have `counts` items; two leaves of
// one start become one.
static void merge_leaves(struct core_blocks *blocks, uint64_t *items,
                         const struct core_block_leaf *leaves, const size_t *counts) {
    size_t kept = 0, count = 0;
    for (size_t i = 0; i < blocks->leaves.count; i++) {
        struct core_block_leaf *last = kept ? &blocks->leaves.items[kept - 1] : NULL;
        memcpy(items + count, blocks->items.items + leaves[i].first, counts[i] * sizeof *items);
        if (last && last->start == leaves[i].start)
            qsort(items + last->first, count + counts[i] - last->first, sizeof *items,
                  compare_items);
        else
            blocks->leaves.items[kept++] = (struct core_block_leaf){leaves[i].start, count};
        count += counts[i];
    }
    blocks->leaves.count = kept;
}

// Allocators that have blocks at odd multiples of 8 too have two leaves for the same 4 MiB.
static bool put_in_order(struct core_blocks *blocks) {
    const size_t count = blocks->leaves.count;
    if (are_ascending(blocks)) return true;
    struct core_block_leaf *leaves = calloc(count, sizeof *leaves);
    size_t *counts = calloc(count, sizeof *counts);
    uint64_t *items = calloc(blocks->items.count, sizeof *items);
    bool is_ok = leaves && counts && items;
    if (is_ok) {
        for (size_t i = 0; i < count; i++) leaves[i] = blocks->leaves.items[i];
        qsort(leaves, count, sizeof *leaves, compare_leaves);
        for (size_t i = 0; i < count; i++) counts[i] = count_from(blocks, leaves[i].first);
        merge_leaves(blocks, items, leaves, counts);
        free(blocks->items.items);
        blocks->items.items = items;
        blocks->items.capacity = blocks->items.count;
        items = NULL;
    }
    if (is_ok && blocks->large.count)
        qsort(blocks->large.items, blocks->large.count, sizeof *blocks->large.items,
              compare_addresses);
    free(items);
    free(leaves);
    free(counts);
    return is_ok;
}

// --- reading them

static struct core_block unpack(const struct core_blocks *blocks, size_t leaf, size_t index) {
    const uint64_t item = blocks->items.items[index];
    const uint64_t offset = item >> (SIZE_BITS + CELL_BITS) << ADDRESS_SHIFT;
    struct core_block block = {.address = blocks->leaves.items[leaf].start + offset,
                               .size = item >> CELL_BITS & SIZE_LARGE,
                               .cell = item & ((1u << CELL_BITS) - 1)};
    if (block.size < SIZE_LARGE) return block;
    size_t low;
    search_first(low, blocks->large.count, blocks->large.items[low].address >= block.address);
    return blocks->large.items[low];
}

bool core_blocks_next(struct core_block_cursor *cursor, struct core_block *block) {
    const struct core_blocks *blocks = cursor->blocks;
    if (cursor->next == blocks->items.count) return false;
    if (cursor->next == end_of_leaf(blocks, cursor->leaf)) cursor->leaf++;
    *block = unpack(blocks, cursor->leaf, cursor->next++);
    return true;
}

bool core_read_blocks(const struct core_image *core, const struct cairn_header *header,
                      size_t cell_count, const struct spans *begins, struct core_blocks *blocks,
                      struct error *error) {
    *blocks = (struct core_blocks){0};
    struct reading *reading = malloc(sizeof *reading);
    if (!reading) return error_set(error, "out of memory");
    reading->core = core;
    reading->blocks = blocks;
    reading->cell_count = cell_count;
    reading->begins = begins;
    reading->places = 0;
    reading->is_wide = header->slot_bytes == sizeof(uint64_t);
    reading->top_count = top_count_of(header->machine);
    bool is_ok = read_tops(reading, header->live_map, error);
    free(reading);
    if (!is_ok) {
        core_free_blocks(blocks);
        return false;
    }
    if (!put_in_order(blocks)) {
        core_free_blocks(blocks);
        return error_set(error, "out of memory");
    }
    spans_settle(&blocks->map);
    return true;
}

void core_free_blocks(struct core_blocks *blocks) {
    array_free(&blocks->items);
    array_free(&blocks->leaves);
    array_free(&blocks->large);
    spans_free(&blocks->map);
}

// --- beside glibc's heap

static bool is_in_chunk(const struct glibc_heap *heap, size_t *next, uint64_t address) {
    while (*next < heap->chunks.count && heap->chunks.items[*next].address <= address) (*next)++;
    if (!*next) return false;
    const struct glibc_chunk *chunk = &heap->chunks.items[*next - 1];
    return address - chunk->address <= chunk->size;
}

static size_t count_outside(const struct core_blocks *blocks, const struct glibc_heap *heap) {
    struct core_block_cursor cursor = {.blocks = blocks};
    struct core_block block;
    size_t count = 0, next = 0;
    while (core_blocks_next(&cursor, &block))
        if (!is_in_chunk(heap, &next, block.address)) count++;
    return count;
}

// Lets a block of another allocator begin where the program uses it: mimalloc aligns within a
// larger one, of which the recording knows the aligned address.
static void begin_as_used(const struct core_blocks *blocks, struct glibc_heap *heap) {
    struct core_block_cursor cursor = {.blocks = blocks};
    struct core_block block;
    size_t next = 0, last = 0;
    while (core_blocks_next(&cursor, &block)) {
        if (!is_in_chunk(heap, &next, block.address)) continue;
        struct glibc_chunk *chunk = &heap->chunks.items[next - 1];
        const uint64_t skipped = block.address - chunk->address;
        if (chunk->kind == CHUNK_MOVING) chunk->kind = CHUNK_USED;
        const bool is_first = last != next;
        last = next;
        if (!is_first || skipped >= chunk->size || chunk_is_free(chunk) ||
            !spans_have(&heap->other.memory, chunk->address))
            continue;
        chunk->address += skipped;
        chunk->size -= skipped;
    }
}

// A size that was half written may reach far beyond the memory that the block lies in.
static uint64_t size_there(const struct core_image *core, const struct core_block *block) {
    const struct memory_segment *segment = core_segment_of(core, block->address);
    uint64_t most = segment ? segment->end - block->address : 0;
    if (most > CHUNK_SIZE_MOST) most = CHUNK_SIZE_MOST;
    return block->size < most ? block->size : most;
}

bool core_add_blocks(const struct core_image *core, const struct core_blocks *blocks,
                     struct glibc_heap *heap, bool *are_all_glibc) {
    if (heap->other.name) begin_as_used(blocks, heap);
    size_t outside = count_outside(blocks, heap), count = 0, next = 0;
    if (!outside) return true;
    *are_all_glibc = false;
    size_t capacity = heap->chunks.count + outside;
    struct glibc_chunk *chunks = calloc(capacity, sizeof *chunks);
    if (!chunks) return false;
    struct core_block_cursor cursor = {.blocks = blocks};
    struct core_block block;
    for (size_t taken = 0; core_blocks_next(&cursor, &block);) {
        bool is_inside = is_in_chunk(heap, &next, block.address);
        while (taken < next) chunks[count++] = heap->chunks.items[taken++];
        if (!is_inside)
            chunks[count++] =
                (struct glibc_chunk){block.address, size_there(core, &block), CHUNK_USED};
    }
    while (next < heap->chunks.count) chunks[count++] = heap->chunks.items[next++];
    array_free(&heap->chunks);
    heap->chunks.items = chunks;
    heap->chunks.count = heap->chunks.capacity = count;
    return true;
}

bool core_block_of(const struct core_blocks *blocks, uint64_t address, struct core_block *block) {
    const struct core_block_leaf *leaves = blocks->leaves.items;
    size_t leaf, low;
    search_first(leaf, blocks->leaves.count, leaves[leaf].start > address);
    if (!leaf--) return false;
    const uint64_t *items = &blocks->items.items[leaves[leaf].first];
    const uint64_t offset = (address - leaves[leaf].start) >> ADDRESS_SHIFT;
    search_first(low, end_of_leaf(blocks, leaf) - leaves[leaf].first,
                 items[low] >> (SIZE_BITS + CELL_BITS) > offset);
    // in front of the first of a leaf is the last one of the leaf before
    if (!low && !leaf) return false;
    const size_t index = leaves[leaf].first + low - 1;
    *block = unpack(blocks, low ? leaf : leaf - 1, index);
    return address - block->address < (block->size ? block->size : 1);
}
