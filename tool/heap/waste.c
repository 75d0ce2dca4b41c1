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
    uint64_t page, page_live;  // the page that was summed up last, and bytes of blocks on it
    uint64_t before_end;       // of the block before
    uint64_t unknown_page;     // on which the first block begins that was found in a window
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

// Pieces of zeros count by their size alone, so that what a process never touched need not be read.
static struct content look_at(struct waste *waste, uint64_t address, uint64_t size) {
    struct content content = {.hash = hash_mix(size, index_table_seed())};
    for (uint64_t at = 0; at < size; at += PIECE_BYTES) {
        const uint64_t part = size - at < PIECE_BYTES ? size - at : PIECE_BYTES,
                       end = address + at + part;
        const uint8_t *bytes = NULL;
        uint64_t used = 0;
        if (core_first_there(waste->core, address + at, end) < end) {
            bytes = read_piece(waste, address + at, part, waste->scratch);
            used = used_of(bytes, part);
        }
        if (used) content.used = at + used;
        content.hash = used ? hash_of(content.hash, bytes, part) : hash_mix(content.hash, part);
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
    const struct glibc_chunk *chunks = waste->source->heap->chunks.items;
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

// --- blocks of which a part was copied

static bool is_copied(const struct waste *waste, uint64_t page) {
    const struct spans *copied = &waste->source->live->windows.copied;
    size_t low;
    search_first(low, copied->items.count, copied->items.items[low].end > page);
    return low < copied->items.count && copied->items.items[low].start <= page;
}

// Page by page from its end. False: all that is there of it was copied.
static bool judge_part(struct waste *waste, struct waste_block *block, uint64_t there) {
    const uint64_t page_bytes = core_page_bytes(waste->core);
    uint64_t tail = 0, next;
    if (!waste->source->live || !waste->source->live->windows.are_drawn) return false;
    for (uint64_t end = block->address + block->size; end > block->address;) {
        uint64_t page = (end - 1) / page_bytes * page_bytes;
        uint64_t start = page > block->address ? page : block->address;
        if (is_touched(waste, page, &next)) {
            if (!is_copied(waste, page)) {
                block->unread = there - tail;
                block->bytes[WASTE_TAIL] = tail;
                return true;
            }
            uint64_t part = end - start;
            uint64_t used = used_of(read_piece(waste, start, part, waste->scratch), part);
            tail += part - used;
            // the use ends here; whether the rest is a copy is asked where all of it is there
            if (used) break;
        }
        end = start;
    }
    for (uint64_t at = block->address; at < block->address + block->size; at = next)
        if (is_touched(waste, at, &next) && !is_copied(waste, at / page_bytes * page_bytes)) {
            block->bytes[WASTE_TAIL] = tail;
            return true;
        }
    return false;
}

static void judge(struct waste *waste, uint32_t number, struct waste_block *block) {
    const struct glibc_chunk *chunk = &waste->source->heap->chunks.items[number];
    *block = (struct waste_block){.address = chunk->address, .size = size_of(waste, chunk)};
    block->bytes[WASTE_SLACK] = chunk->size - block->size;
    block->bytes[WASTE_UNTOUCHED] = untouched_bytes(waste, block->address, block->size);
    uint64_t there = block->size - block->bytes[WASTE_UNTOUCHED];
    if (!there || judge_part(waste, block, there)) return;
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

// --- pages that few bytes keep

enum { SPARSE_PART = 8 };

static uint64_t overlap(uint64_t start, uint64_t end, uint64_t page, uint64_t page_bytes) {
    if (start < page) start = page;
    if (end > page + page_bytes) end = page + page_bytes;
    return end > start ? end - start : 0;
}

// Bytes on a page of the block with that number and those behind it.
static uint64_t live_from(const struct waste *waste, size_t number, uint64_t page) {
    const struct glibc_heap *heap = waste->source->heap;
    const uint64_t page_bytes = core_page_bytes(waste->core);
    uint64_t live = 0;
    for (size_t i = number; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        uint64_t start = chunk->address, end = start + (chunk->size ? chunk->size : 1);
        if (start >= page + page_bytes) break;
        if (!chunk_is_free(chunk)) live += overlap(start, end, page, page_bytes);
    }
    return live;
}

// Whether all that lies on a page of a block is known: not where a window that was drawn begins,
// into which blocks may reach, or ends.
static bool is_page_known(const struct waste *waste, size_t number, uint64_t page) {
    const struct stopped_image *live = waste->source->live;
    if (!live || !live->windows.are_drawn) return true;
    const struct glibc_chunk *chunk = &waste->source->heap->chunks.items[number];
    const uint64_t window = chunk->address / WINDOW_BYTES * WINDOW_BYTES;
    return page < window + WINDOW_BYTES && page != waste->unknown_page;
}

static uint64_t sparse_on(const struct waste *waste, size_t number, uint64_t start, uint64_t end) {
    const uint64_t page_bytes = core_page_bytes(waste->core);
    const uint64_t own = overlap(start, end, waste->page, page_bytes);
    uint64_t next;
    bool is_sparse = waste->page_live && waste->page_live <= page_bytes / SPARSE_PART &&
                     is_page_known(waste, number, waste->page) &&
                     is_touched(waste, waste->page, &next);
    return is_sparse ? (page_bytes - waste->page_live) * own / waste->page_live : 0;
}

// Of the pages of a block only the first and the last one have others on them.
static uint64_t sparse_bytes(struct waste *waste, size_t number) {
    const struct glibc_chunk *chunk = &waste->source->heap->chunks.items[number];
    const uint64_t page_bytes = core_page_bytes(waste->core);
    const uint64_t start = chunk->address, end = start + (chunk->size ? chunk->size : 1);
    const uint64_t first = start / page_bytes * page_bytes,
                   last = (end - 1) / page_bytes * page_bytes;
    bool is_first = !number || chunk[-1].address / WINDOW_BYTES != start / WINDOW_BYTES;
    if (is_first) waste->unknown_page = first;
    if (waste->page != first) {
        waste->page = first;
        waste->page_live =
            overlap(first, waste->before_end, first, page_bytes) + live_from(waste, number, first);
    }
    uint64_t sum = sparse_on(waste, number, start, end);
    if (last != first) {
        waste->page = last;
        waste->page_live = live_from(waste, number, last);
        sum += sparse_on(waste, number, start, end);
    }
    waste->before_end = end;
    return sum;
}

bool waste_find(const struct waste_source *source,
                bool (*see)(void *context, const struct waste_block *block), void *context) {
    struct waste waste = {.source = source,
                          .core = source->core,
                          .scratch = malloc(PIECE_BYTES),
                          .other = malloc(PIECE_BYTES)};
    const struct glibc_heap *heap = source->heap;
    bool is_on = waste.scratch && waste.other;
    bool is_drawn = source->live && source->live->windows.are_drawn;
    waste.is_failed = !is_on;
    waste.page = UINT64_MAX;
    for (size_t i = 0; i < heap->chunks.count && is_on; i++) {
        struct waste_block block;
        if (!chunk_is_used(&heap->chunks.items[i])) continue;
        judge(&waste, (uint32_t)i, &block);
        block.sparse = sparse_bytes(&waste, i);
        if (is_drawn) block.unit = windows_unit_of(&source->live->windows, block.address);
        is_on = !waste.is_failed && see(context, &block);
    }
    array_free(&waste.contents);
    index_table_free(&waste.index);
    free(waste.scratch);
    free(waste.other);
    return !waste.is_failed;
}
