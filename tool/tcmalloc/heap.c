// SPDX-License-Identifier: Apache-2.0
#include "tool/tcmalloc/heap.h"

#include <stdlib.h>

#include "tool/tcmalloc/places.h"

enum {
    LEAF_BITS = 18,
    ROOT_WORDS = 1 << 17,
    LEAF_WORDS = 1 << LEAF_BITS,
    PIECE_WORDS = 8192,
    WORD = sizeof(uint64_t),
    CACHES_MAX = 1 << 16,
    CHAIN_MAX = 1 << 16,
};
#define PAGES_MOST (UINT64_C(1) << 34)

struct reading {
    const struct memory_reader *memory;
    struct tcmalloc_places places;
    struct glibc_heap found;
    uint64_t leaf, first_page, last_span;
    uint64_t span_counts[TCMALLOC_CLASSES_MAX];
    uint64_t span_count, torn_count;
    bool is_out_of_memory;
};

// --- words

static bool each_word(struct reading *reading, uint64_t start, size_t count,
                      bool (*see)(struct reading *reading, uint64_t number, uint64_t word)) {
    uint64_t words[PIECE_WORDS];
    for (size_t at = 0; at < count; at += PIECE_WORDS) {
        if (!memory_read(reading->memory, start + at * WORD, words, sizeof words)) continue;
        for (size_t i = 0; i < PIECE_WORDS; i++)
            if (words[i] && !see(reading, at + i, words[i])) return false;
    }
    return true;
}

static struct glibc_chunk *block_at(struct reading *reading, uint64_t address) {
    struct glibc_chunk *chunk =
        (struct glibc_chunk *)(uintptr_t)glibc_chunk_of(&reading->found, address);
    return chunk && chunk->address == address ? chunk : NULL;
}

// --- spans

static unsigned location_of(const struct tcmalloc_span *span) {
    return span->flags & TCMALLOC_LOCATIONS;
}

static uint64_t page_span(const struct reading *reading, uint64_t page) {
    uint64_t leaf = 0, span = 0;
    memory_read_word(reading->memory, reading->places.root + (page >> LEAF_BITS) * WORD, &leaf);
    if (leaf) memory_read_word(reading->memory, leaf + (page & (LEAF_WORDS - 1)) * WORD, &span);
    return span;
}

static bool is_plausible(const struct reading *reading, const struct tcmalloc_span *span,
                         uint64_t address) {
    const struct tcmalloc_places *places = &reading->places;
    if (!span->length || span->length > PAGES_MOST || location_of(span) > TCMALLOC_RETURNED ||
        page_span(reading, span->start + span->length - 1) != address)
        return false;
    return !span->size_class || (span->size_class < places->class_count &&
                                 span->length == places->span_pages[span->size_class] &&
                                 location_of(span) == TCMALLOC_IN_USE);
}

// Marks the free blocks of a span, which are the last ones that were pushed. Returns how many there
// are; UINT64_MAX: the list leads elsewhere.
static uint64_t mark_free(struct reading *reading, const struct tcmalloc_span *span, size_t first) {
    const uint64_t size = reading->places.sizes[span->size_class];
    const uint64_t start = span->start << TCMALLOC_PAGE_SHIFT;
    const size_t count = reading->found.chunks.count - first;
    uint64_t free = 0;
    for (uint64_t at = span->objects; at; free++) {
        const uint64_t number = (at - start) / size;
        if (at < start || number >= count || (at - start) % size || free >= count)
            return UINT64_MAX;
        struct glibc_chunk *chunk = &reading->found.chunks.items[first + number];
        if (chunk->kind != CHUNK_USED) return UINT64_MAX;
        chunk->kind = CHUNK_BINNED;
        if (!memory_read_word(reading->memory, at, &at)) return UINT64_MAX;
    }
    return free;
}

static bool push_block(struct reading *reading, uint64_t address, uint64_t size) {
    struct glibc_chunk *slot = array_push(&reading->found.chunks);
    if (slot) *slot = (struct glibc_chunk){address, size, CHUNK_USED};
    return slot;
}

static bool add_small(struct reading *reading, const struct tcmalloc_span *span) {
    const uint64_t size = reading->places.sizes[span->size_class];
    const uint64_t start = span->start << TCMALLOC_PAGE_SHIFT;
    const uint64_t count = (span->length << TCMALLOC_PAGE_SHIFT) / size;
    const size_t first = reading->found.chunks.count;
    for (uint64_t i = 0; i < count; i++)
        if (!push_block(reading, start + i * size, size)) return false;
    reading->span_counts[span->size_class]++;
    if (mark_free(reading, span, first) + span->used != count) {
        reading->torn_count++;
        reading->found.chunks.count = first;
    }
    return true;
}

static bool add_span(struct reading *reading, const struct tcmalloc_span *span) {
    struct other_heap *other = &reading->found.other;
    const uint64_t start = span->start << TCMALLOC_PAGE_SHIFT;
    const uint64_t bytes = span->length << TCMALLOC_PAGE_SHIFT;
    reading->span_count++;
    if (!spans_add(&other->memory, start, start + bytes)) return false;
    switch (location_of(span)) {
    case TCMALLOC_KEPT:
        other->dirty_bytes += bytes;
        return spans_add(&other->free_pages, start, start + bytes) &&
               spans_add(&other->asked, start, start + bytes);
    case TCMALLOC_RETURNED:
        other->retained_bytes += bytes;
        return true;
    default:
        break;
    }
    other->page_bytes += bytes;
    return span->size_class ? add_small(reading, span) : push_block(reading, start, bytes);
}

// Pages of a span all lead to it, or the first and the last one.
static bool see_page(struct reading *reading, uint64_t number, uint64_t word) {
    struct tcmalloc_span span;
    if (word == reading->last_span) return true;
    reading->last_span = word;
    if (!memory_read(reading->memory, word, &span, sizeof span) ||
        span.start != reading->first_page + number)
        return true;  // a page within, or a word from before
    if (!is_plausible(reading, &span, word)) {
        reading->torn_count++;
        return true;
    }
    reading->is_out_of_memory =
        !spans_add(&reading->found.other.memory, word, word + sizeof span) ||
        !add_span(reading, &span);
    return !reading->is_out_of_memory;
}

static bool see_leaf(struct reading *reading, uint64_t number, uint64_t leaf) {
    reading->first_page = number << LEAF_BITS;
    reading->last_span = 0;
    reading->is_out_of_memory =
        !spans_add(&reading->found.other.memory, leaf, leaf + (uint64_t)LEAF_WORDS * WORD);
    return !reading->is_out_of_memory && each_word(reading, leaf, LEAF_WORDS, see_page);
}

// --- free blocks outside of spans

// Marks the blocks of a chain, `count` or, where `tail` is given, up to that. False: it leads
// elsewhere, or has another length.
static bool mark_chain(struct reading *reading, uint64_t head, uint64_t tail, uint64_t count,
                       uint64_t size) {
    uint64_t seen = 0;
    for (uint64_t at = head; at && seen < CHAIN_MAX; seen++) {
        struct glibc_chunk *chunk = block_at(reading, at);
        if (!chunk || chunk->size != size || chunk->kind != CHUNK_USED) return false;
        chunk->kind = CHUNK_CACHED;
        if (at == tail) return true;
        if (!memory_read_word(reading->memory, at, &at)) return false;
    }
    return !tail && seen == count;
}

static void mark_central(struct reading *reading) {
    const struct tcmalloc_places *places = &reading->places;
    struct tcmalloc_lists lists;
    for (unsigned i = 1; i < places->class_count; i++) {
        if (!memory_read(reading->memory, places->lists + i * sizeof lists, &lists, sizeof lists))
            continue;
        // a span that is on its way between the page map and the lists
        if (lists.span_count != reading->span_counts[i]) reading->found.broken_count++;
        for (unsigned k = 0; k < lists.used_slots && k < TCMALLOC_SLOTS; k++)
            if (!mark_chain(reading, lists.slots[k].head, lists.slots[k].tail, 0, places->sizes[i]))
                reading->found.broken_count++;
    }
}

static void mark_cache(struct reading *reading, const struct tcmalloc_cache *cache) {
    const struct tcmalloc_places *places = &reading->places;
    for (unsigned i = 1; i < places->class_count; i++)
        if (!mark_chain(reading, cache->lists[i].head, 0, cache->lists[i].count, places->sizes[i]))
            reading->found.broken_count++;
}

// Goes from any cache through those before it, then through those behind it.
static void mark_caches(struct reading *reading) {
    const struct tcmalloc_places *places = &reading->places;
    struct tcmalloc_cache cache;
    uint64_t first = places->cache;
    struct spans *memory = &reading->found.other.memory;
    bool is_known = first;
    for (unsigned i = 0;
         i < CACHES_MAX && memory_read(reading->memory, first, &cache, sizeof cache) &&
         cache.others[places->previous_place];
         i++)
        first = cache.others[places->previous_place];
    for (unsigned i = 0; first && i < CACHES_MAX && is_known; i++) {
        is_known = tcmalloc_cache_read(reading->memory, places, first, &cache) &&
                   spans_add(memory, first, first + sizeof cache);
        if (!is_known) break;
        mark_cache(reading, &cache);
        first = cache.others[places->next_place];
    }
    if (!is_known) reading->found.other.unknown_caches++;
}

// --- what the blocks leave

static bool sum_up(struct reading *reading, const struct glibc_chunk *blocks, size_t count,
                   uint64_t page_bytes) {
    struct other_heap *other = &reading->found.other;
    struct other_class *class = other_heap_class(other, blocks->size);
    uint64_t used = 0;
    if (!class) return false;
    class->page_bytes += page_bytes;
    for (size_t i = 0; i < count; i++) {
        used += blocks[i].kind == CHUNK_USED;
        class->free += blocks[i].kind == CHUNK_BINNED;
        class->cached += blocks[i].kind == CHUNK_CACHED;
    }
    class->used += used;
    return used || spans_add(&other->emptied, blocks->address, blocks->address + page_bytes);
}

static unsigned class_of_size(const struct tcmalloc_places *places, uint64_t size) {
    for (unsigned i = 1; i < places->class_count; i++)
        if (places->sizes[i] == size) return i;
    return 0;
}

// Blocks of a span follow one another; a span begins at a page of its own.
static bool sum_spans(struct reading *reading) {
    const struct glibc_heap *heap = &reading->found;
    for (size_t i = 0; i < heap->chunks.count;) {
        const struct glibc_chunk *block = &heap->chunks.items[i];
        const unsigned class = class_of_size(&reading->places, block->size);
        const uint64_t bytes =
            class ? reading->places.span_pages[class] << TCMALLOC_PAGE_SHIFT : block->size;
        const size_t count = class ? bytes / block->size : 1;
        if (count > heap->chunks.count - i || !sum_up(reading, block, count, bytes)) return false;
        i += count;
    }
    return true;
}

// Says whether blocks begin with what the debugging variant of tcmalloc puts in front of what the
// program gets: sizes and a magic number, which are not known here.
static bool is_for_debugging(const struct reading *reading) {
    enum { LOOKED_AT = 64, MAGIC_OFFSET = 16 };
    const uint64_t magic = 0xdeadbeef;
    const struct glibc_heap *heap = &reading->found;
    size_t seen = 0, marked = 0;
    for (size_t i = 0; i < heap->chunks.count && seen < LOOKED_AT; i++) {
        uint64_t word = 0;
        if (heap->chunks.items[i].kind != CHUNK_USED ||
            heap->chunks.items[i].size < 2 * MAGIC_OFFSET)
            continue;
        memory_read_word(reading->memory, heap->chunks.items[i].address + MAGIC_OFFSET, &word);
        marked += word == magic;
        seen++;
    }
    return marked > seen / 2;
}

static bool read_all(struct reading *reading) {
    const uint64_t root = reading->places.root;
    bool is_ok =
        spans_add(&reading->found.other.memory, root, root + (uint64_t)ROOT_WORDS * WORD) &&
        each_word(reading, root, ROOT_WORDS, see_leaf);
    if (!is_ok) return false;
    mark_central(reading);
    mark_caches(reading);
    is_ok = sum_spans(reading);
    other_heap_settle(&reading->found.other);
    return is_ok;
}

enum tcmalloc_finding tcmalloc_heap_add(const struct memory_view *view, const struct spans *data,
                                        struct glibc_heap *heap) {
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading) return TCMALLOC_FAILED;
    reading->memory = &view->reader;
    reading->found.other.name = "tcmalloc";
    enum tcmalloc_finding finding = TCMALLOC_NONE;
    if (tcmalloc_find_places(reading->memory, data, &reading->places)) {
        bool is_ok = read_all(reading);
        if (is_ok && reading->span_count > reading->torn_count &&
            reading->torn_count <= reading->span_count / 8 + 1 && !is_for_debugging(reading)) {
            reading->found.broken_count += reading->torn_count;
            is_ok = glibc_heap_join(heap, &reading->found);
            finding = TCMALLOC_FOUND;
        }
        if (!is_ok) finding = TCMALLOC_FAILED;
    }
    glibc_heap_free(&reading->found);
    free(reading);
    return finding;
}
