// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/waste.h"

#include <string.h>

#include "tool/base/search.h"
#include "tool/model/index_table.h"

enum { PIECE_BYTES = 1 << 16, WORD = 8 };

// A content, by the first block that has it.
struct waste_content {
    uint32_t chunk;  // index
    bool has_copies;
};

struct waste {
    const struct waste_source *source;
    const struct core_image *core;
    ARRAY(struct waste_content) contents;
    struct index_table index;  // of contents, by hash
    uint8_t *scratch, *other;  // PIECE_BYTES each
    uint64_t places;
    bool is_failed;
};

// --- pages

static const struct stopped_segment *segment_of(const struct stopped_image *live,
                                                uint64_t address) {
    size_t at;
    search_first(at, live->segments.count, live->segments.items[at].end > address);
    bool is_inside = at < live->segments.count && live->segments.items[at].start <= address;
    return is_inside ? &live->segments.items[at] : NULL;
}

// Whether the page of an address is there, and where it ends.
static bool is_touched(const struct waste *waste, uint64_t address, uint64_t *end) {
    const struct stopped_image *live = waste->source->live;
    uint64_t page_bytes = core_page_bytes(waste->core);
    *end = (address / page_bytes + 1) * page_bytes;
    const struct stopped_segment *segment = live ? segment_of(live, address) : NULL;
    return !segment || segment->are_resident[(address - segment->start) / page_bytes];
}

static uint64_t untouched_bytes(const struct waste *waste, uint64_t address, uint64_t size) {
    uint64_t sum = 0, end = address + size;
    if (!waste->source->live) return 0;
    for (uint64_t at = address, next; at < end; at = next) {
        bool is_there = is_touched(waste, at, &next);
        if (next > end) next = end;
        if (!is_there) sum += next - at;
    }
    return sum;
}

// --- contents

// Bytes of one piece of a block. What the image lacks is zero.
static const uint8_t *read_piece(const struct waste *waste, uint64_t address, uint64_t size,
                                 uint8_t *scratch) {
    const uint8_t *bytes;
    if (core_piece(waste->core, address, scratch, size, &bytes) == size) return bytes;
    for (uint64_t at = 0; at < size; at++)
        if (!core_read(waste->core, address + at, &scratch[at], 1)) scratch[at] = 0;
    return scratch;
}

struct content {
    uint64_t hash;
    uint64_t used;  // up to the last byte that is not zero
};

static uint64_t used_of(const uint8_t *bytes, uint64_t size) {
    uint64_t word;
    while (size >= WORD) {
        memcpy(&word, bytes + size - WORD, sizeof word);
        if (word) break;
        size -= WORD;
    }
    while (size && !bytes[size - 1]) size--;
    return size;
}

static uint64_t hash_of(uint64_t hash, const uint8_t *bytes, uint64_t size) {
    uint64_t word = 0;
    for (; size >= WORD; bytes += WORD, size -= WORD) {
        memcpy(&word, bytes, sizeof word);
        hash = hash_mix(hash, word);
    }
    word = 0;
    if (size) memcpy(&word, bytes, size);
    return hash_mix(hash, word);
}

static struct content look_at(struct waste *waste, uint64_t address, uint64_t size) {
    struct content content = {.hash = hash_mix(size, index_table_seed())};
    for (uint64_t at = 0; at < size; at += PIECE_BYTES) {
        uint64_t part = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        const uint8_t *bytes = read_piece(waste, address + at, part, waste->scratch);
        uint64_t used = used_of(bytes, part);
        if (used) content.used = at + used;
        content.hash = hash_of(content.hash, bytes, part);
    }
    core_place_done(waste->core, size, &waste->places);
    return content;
}

static bool are_equal(struct waste *waste, uint64_t one, uint64_t other, uint64_t size) {
    for (uint64_t at = 0; at < size; at += PIECE_BYTES) {
        uint64_t part = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        const uint8_t *bytes = read_piece(waste, one + at, part, waste->scratch);
        if (memcmp(bytes, read_piece(waste, other + at, part, waste->other), part) != 0)
            return false;
    }
    return true;
}

// Whether a block is one string: printable bytes, at least one, and zeros alone behind them.
static bool is_string(struct waste *waste, const struct waste_block *block, uint64_t used) {
    enum { DELETE = 127 };
    for (uint64_t at = 0; at < used; at += PIECE_BYTES) {
        uint64_t part = used - at < PIECE_BYTES ? used - at : PIECE_BYTES;
        const uint8_t *bytes = read_piece(waste, block->address + at, part, waste->scratch);
        for (uint64_t i = 0; i < part; i++)
            if ((bytes[i] < ' ' && !(bytes[i] >= '\t' && bytes[i] <= '\r')) || bytes[i] == DELETE)
                return false;
    }
    return used;
}

// --- blocks

static uint64_t size_of(const struct waste *waste, const struct glibc_chunk *chunk) {
    struct core_block block;
    const struct core_blocks *blocks = waste->source->blocks;
    bool is_known = blocks && core_block_of(blocks, chunk->address, &block) &&
                    block.address == chunk->address && block.size <= chunk->size;
    return is_known ? block.size : chunk->size;
}

// Whether a block with a lower address has the same content; if not, this one is remembered.
static bool is_copy(struct waste *waste, uint32_t chunk, struct waste_block *block, uint64_t hash) {
    const struct glibc_chunk *chunks = waste->source->reach->heap.chunks.items;
    struct index_probe probe = index_probe_start(&waste->index, hash);
    for (uint32_t i; index_probe_next(&waste->index, &probe, &i);) {
        struct waste_content *content = &waste->contents.items[i];
        const struct glibc_chunk *other = &chunks[content->chunk];
        if (size_of(waste, other) != block->size ||
            !are_equal(waste, block->address, other->address, block->size))
            continue;
        block->is_first_copy = !content->has_copies;
        content->has_copies = true;
        return true;
    }
    struct waste_content *slot = array_push(&waste->contents);
    waste->is_failed |=
        !slot || !index_table_insert(&waste->index, hash, (uint32_t)(waste->contents.count - 1));
    if (slot) *slot = (struct waste_content){.chunk = chunk};
    return false;
}

// Where the last touched page of the block ends: behind it nothing is a tail.
static uint64_t touched_end(const struct waste *waste, const struct waste_block *block) {
    uint64_t end = 0, last = block->address + block->size;
    if (!waste->source->live) return last;
    for (uint64_t at = block->address, next; at < last; at = next)
        if (is_touched(waste, at, &next)) end = next < last ? next : last;
    return end;
}

// Untouched bytes between the last one that is in use and the end are not its tail as well.
static uint64_t tail_bytes(const struct waste *waste, const struct waste_block *block,
                           uint64_t used) {
    uint64_t start = block->address + used, end = touched_end(waste, block);
    return end > start ? end - start - untouched_bytes(waste, start, end - start) : 0;
}

static void judge(struct waste *waste, uint32_t number, struct waste_block *block) {
    const struct glibc_chunk *chunk = &waste->source->reach->heap.chunks.items[number];
    *block = (struct waste_block){.address = chunk->address, .size = size_of(waste, chunk)};
    block->bytes[WASTE_SLACK] = chunk->size - block->size;
    block->bytes[WASTE_UNTOUCHED] = untouched_bytes(waste, block->address, block->size);
    uint64_t there = block->size - block->bytes[WASTE_UNTOUCHED];
    if (!there) return;
    const struct content content = look_at(waste, block->address, block->size);
    if (!content.used) {
        block->bytes[WASTE_ZERO] = there;
        return;
    }
    if (is_copy(waste, number, block, content.hash)) {
        block->bytes[WASTE_DUPLICATE] = there;
        block->is_string = is_string(waste, block, content.used);
    } else {
        block->bytes[WASTE_TAIL] = tail_bytes(waste, block, content.used);
    }
}

bool waste_find(const struct waste_source *source,
                bool (*see)(void *context, const struct waste_block *block), void *context) {
    struct waste waste = {.source = source,
                          .core = source->reach->core,
                          .scratch = malloc(PIECE_BYTES),
                          .other = malloc(PIECE_BYTES)};
    const struct glibc_heap *heap = &source->reach->heap;
    bool is_on = waste.scratch && waste.other;
    waste.is_failed = !is_on;
    for (size_t i = 0; i < heap->chunks.count && is_on; i++) {
        struct waste_block block;
        if (chunk_is_free(&heap->chunks.items[i])) continue;
        judge(&waste, (uint32_t)i, &block);
        is_on = !waste.is_failed && see(context, &block);
    }
    array_free(&waste.contents);
    index_table_free(&waste.index);
    free(waste.scratch);
    free(waste.other);
    return !waste.is_failed;
}
