// SPDX-License-Identifier: Apache-2.0
#include "tool/tcmalloc/heap.h"

#include <stdlib.h>

#include "tool/tcmalloc/chains.h"
#include "tool/tcmalloc/places.h"

enum {
    LEAF_BITS = 18,
    ROOT_WORDS = 1 << 17,
    LEAF_WORDS = 1 << LEAF_BITS,
    PIECE_WORDS = 8192,
    WORD = sizeof(uint64_t),
    CACHES_MAX = 1 << 16,
};
#define PAGES_MOST (UINT64_C(1) << 29)  // 4 TiB, more than any machine has

// The blocks of a span among the chunks.
struct span_blocks {
    size_t first, count;
    uint64_t page_bytes;
};

struct reading {
    const struct memory_reader *memory;
    struct tcmalloc_places places;
    struct glibc_heap found;
    struct tcmalloc_chains chains;
    ARRAY(struct span_blocks) spans;
    uint64_t leaf, first_page, last_span;
    uint64_t last_end;  // page behind the span before
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

static void set_all(struct reading *reading, size_t first, enum chunk_kind kind) {
    for (size_t i = first; i < reading->found.chunks.count; i++)
        reading->found.chunks.items[i].kind = kind;
}

static bool add_small(struct reading *reading, const struct tcmalloc_span *span) {
    const uint64_t size = reading->places.sizes[span->size_class];
    const uint64_t start = span->start << TCMALLOC_PAGE_SHIFT;
    const uint64_t count = (span->length << TCMALLOC_PAGE_SHIFT) / size;
    const size_t first = reading->found.chunks.count;
    for (uint64_t i = 0; i < count; i++)
        if (!push_block(reading, start + i * size, size)) return false;
    reading->span_counts[span->size_class]++;
    const uint64_t free = mark_free(reading, span, first);
    reading->torn_count += free > count || free + span->used != count;
    // The lock's holder may be taking blocks out of the list or putting one there, and its count
    // comes later. If the list leads elsewhere, nothing of the span is known to be free. If no
    // block is out, all are free: the span is being cut into blocks, or given back.
    if (!span->used)
        set_all(reading, first, CHUNK_BINNED);
    else if (free > count || free + span->used > count + 1)
        set_all(reading, first, CHUNK_USED);
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
    const size_t first = reading->found.chunks.count;
    if (!(span->size_class ? add_small(reading, span) : push_block(reading, start, bytes)))
        return false;
    struct span_blocks *blocks = array_push(&reading->spans);
    if (blocks) *blocks = (struct span_blocks){first, reading->found.chunks.count - first, bytes};
    return blocks;
}

// Pages of a span all lead to it, or the first and the last one.
static bool see_page(struct reading *reading, uint64_t number, uint64_t word) {
    struct tcmalloc_span span;
    if (word == reading->last_span) return true;
    if (!memory_read(reading->memory, word, &span, sizeof span) ||
        span.start != reading->first_page + number)
        return true;  // a page within, or a word from before: the next page may be its first
    reading->last_span = word;
    if (span.start < reading->last_end || !is_plausible(reading, &span, word)) {
        reading->torn_count++;
        return true;
    }
    reading->last_end = span.start + span.length;
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

// Marks the blocks between threads. Returns false if they lead elsewhere.
static bool mark_slot(struct reading *reading, uint64_t head, uint64_t tail, uint64_t size,
                      enum chunk_kind kind) {
    const uint64_t found =
        tail ? tcmalloc_chain_count(&reading->chains, head, tail, size) : UINT64_MAX;
    if (found == UINT64_MAX) return false;
    tcmalloc_chain_mark(&reading->chains, head, found, 0, kind);
    return true;
}

// Marks a thread's list. Returns false if it has not as many blocks as it counts. Its thread may be
// putting a block there or taking one: where the list has one or two more than it counts, those
// behind the first ones are free all the same. The first may lead to a block in use, where it led
// before.
static bool mark_list(struct reading *reading, uint64_t head, uint64_t count, uint64_t size) {
    enum { MORE_MOST = 2 };
    const uint64_t found = tcmalloc_chain_count(&reading->chains, head, 0, size);
    if (found == UINT64_MAX || found < count || found > count + MORE_MOST) return false;
    tcmalloc_chain_mark(&reading->chains, head, found, found == count ? 0 : found - count + 1,
                        CHUNK_CACHED);
    return found == count;
}

// Returns how many slots of a class are settled: who holds the lock may have counted a chain that
// is not written yet.
static unsigned settled_slots(const struct tcmalloc_lists *lists) {
    const unsigned used = lists->used_slots < TCMALLOC_SLOTS ? lists->used_slots : TCMALLOC_SLOTS;
    return used - (lists->lock && used);
}

static bool read_lists(const struct reading *reading, unsigned number,
                       struct tcmalloc_lists *lists) {
    return memory_read(reading->memory, reading->places.lists + number * sizeof *lists, lists,
                       sizeof *lists);
}

static void mark_central(struct reading *reading) {
    const struct tcmalloc_places *places = &reading->places;
    struct tcmalloc_lists lists;
    for (unsigned i = 1; i < places->class_count; i++) {
        if (!read_lists(reading, i, &lists)) continue;
        // a span that is on its way between the page map and the lists
        if (lists.span_count != reading->span_counts[i]) reading->found.broken_count++;
        for (unsigned k = 0; k < settled_slots(&lists); k++)
            if (!mark_slot(reading, lists.slots[k].head, lists.slots[k].tail, places->sizes[i],
                           CHUNK_CACHED))
                reading->found.broken_count++;
    }
}

// Marks the last chain of each class whose lock is held: its holder may be about to write it, and
// an older one still be there.
static void mark_last_slots(struct reading *reading) {
    struct tcmalloc_lists lists;
    for (unsigned i = 1; i < reading->places.class_count; i++) {
        if (!read_lists(reading, i, &lists) || !lists.lock || !lists.used_slots ||
            lists.used_slots > TCMALLOC_SLOTS)
            continue;
        const unsigned last = lists.used_slots - 1;
        mark_slot(reading, lists.slots[last].head, lists.slots[last].tail, reading->places.sizes[i],
                  CHUNK_MOVING);
    }
}

static bool mark_cache(struct reading *reading, uint64_t address,
                       const struct tcmalloc_cache *cache) {
    const struct tcmalloc_places *places = &reading->places;
    struct tcmalloc_known_cache *known = array_push(&reading->chains.caches);
    if (!known) return false;
    *known = (struct tcmalloc_known_cache){address, (int32_t)cache->others[0]};
    for (unsigned i = 1; i < places->class_count; i++) {
        const uint64_t count = cache->lists[i].count, size = places->sizes[i];
        reading->found.broken_count += !mark_list(reading, cache->lists[i].head, count, size);
        known->missing_bytes -= (int64_t)(count * size);
    }
    return true;
}

// Goes from any cache through those before it, then through those behind it.
static bool mark_caches(struct reading *reading) {
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
        if (!mark_cache(reading, first, &cache)) return false;
        first = cache.others[places->next_place];
    }
    if (!is_known) reading->found.other.unknown_caches++;
    return true;
}

// --- what the blocks leave

static bool sum_up(struct reading *reading, const struct glibc_chunk *blocks, size_t count,
                   uint64_t page_bytes) {
    struct other_heap *other = &reading->found.other;
    struct other_class *class = other_heap_class(other, blocks->size);
    uint64_t used = 0, moving = 0;
    if (!class) return false;
    class->page_bytes += page_bytes;
    for (size_t i = 0; i < count; i++) {
        used += blocks[i].kind == CHUNK_USED;
        moving += blocks[i].kind == CHUNK_MOVING;
        class->free += blocks[i].kind == CHUNK_BINNED;
        class->cached += blocks[i].kind == CHUNK_CACHED;
    }
    class->used += used;
    class->moving += moving;
    other->moving_blocks += moving;
    return used || moving ||
           spans_add(&other->emptied, blocks->address, blocks->address + page_bytes);
}

static bool sum_spans(struct reading *reading) {
    for (size_t i = 0; i < reading->spans.count; i++) {
        const struct span_blocks *span = &reading->spans.items[i];
        if (!sum_up(reading, &reading->found.chunks.items[span->first], span->count,
                    span->page_bytes))
            return false;
    }
    return true;
}

// Says whether blocks begin with what the debugging variant of tcmalloc puts in front of what the
// program gets: sizes and a magic number, which are not known here. Its own blocks have none.
static bool is_for_debugging(const struct reading *reading) {
    enum { LOOKED_AT = 4096, MAGIC_OFFSET = 16, LEAST_PART = 8 };
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
    return marked > seen / LEAST_PART;
}

static bool read_all(struct reading *reading, const struct tcmalloc_source *source) {
    const uint64_t root = reading->places.root;
    bool is_ok =
        spans_add(&reading->found.other.memory, root, root + (uint64_t)ROOT_WORDS * WORD) &&
        each_word(reading, root, ROOT_WORDS, see_leaf);
    if (!is_ok) return false;
    mark_central(reading);
    if (!mark_caches(reading)) return false;
    for (size_t i = 0; i < source->thread_count; i++)
        tcmalloc_chains_moving(&reading->chains, &source->threads[i]);
    mark_last_slots(reading);
    reading->found.other.busy_threads = reading->chains.busy_count;
    is_ok = sum_spans(reading);
    other_heap_settle(&reading->found.other);
    return is_ok;
}

enum tcmalloc_finding tcmalloc_heap_add(const struct tcmalloc_source *source,
                                        struct glibc_heap *heap) {
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading) return TCMALLOC_FAILED;
    reading->memory = &source->view->reader;
    reading->chains.memory = reading->memory;
    reading->chains.places = &reading->places;
    reading->chains.heap = &reading->found;
    reading->found.other.name = "tcmalloc";
    enum tcmalloc_finding finding = TCMALLOC_NONE;
    if (tcmalloc_find_places(reading->memory, source->data, &reading->places)) {
        bool is_ok = read_all(reading, source);
        if (is_ok && reading->span_count > reading->torn_count &&
            reading->torn_count <= reading->span_count / 8 + 1 && !is_for_debugging(reading)) {
            reading->found.broken_count += reading->torn_count;
            is_ok = glibc_heap_join(heap, &reading->found);
            finding = TCMALLOC_FOUND;
        }
        if (!is_ok) finding = TCMALLOC_FAILED;
    }
    glibc_heap_free(&reading->found);
    array_free(&reading->spans);
    array_free(&reading->chains.caches);
    free(reading);
    return finding;
}
