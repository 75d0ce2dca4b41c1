// SPDX-License-Identifier: Apache-2.0
#include "tool/glibc/chunks.h"

#include <stdlib.h>

#include "tool/base/spans.h"
#include "tool/glibc/arenas.h"

enum {
    WORD = 8,
    BROKEN_BINS_MAX = 2,
    HEAPS_MAX = 4096,
};

// A stretch of memory that chunks fill, or where some with mappings of their own may be.
struct stretch {
    uint64_t start, end;
    uint64_t reach;  // of such that begin in it: what lies behind it without a gap
    bool is_mapped;
};

struct walk {
    const struct memory_view *view;
    struct memory_window window;
    struct glibc_heap *heap;
    struct arenas arenas;
    ARRAY(struct stretch) stretches;
    uint64_t mapped_until;  // the end of the last chunk with a mapping of its own
};

static bool find_arenas(struct walk *walk) {
    for (size_t i = 0; i < walk->view->segment_count; i++) {
        const struct memory_segment *segment = &walk->view->segments[i];
        if (arenas_find(&walk->arenas, &walk->view->reader, segment->start,
                        segment->start + segment->bytes, BROKEN_BINS_MAX))
            return true;
    }
    return false;
}

static void place_done(struct walk *walk) {
    const struct memory_reader *reader = &walk->view->reader;
    if (reader->place_done) reader->place_done(reader->context, &walk->window.places);
}

// --- chunks

static bool add_chunk(struct walk *walk, uint64_t chunk, uint64_t usable, enum chunk_kind kind) {
    if (chunk > CHUNK_ADDRESS_MOST || usable > CHUNK_SIZE_MOST) {
        walk->heap->broken_count++;
        return true;
    }
    struct glibc_chunk *slot = array_push(&walk->heap->chunks);
    if (slot) *slot = (struct glibc_chunk){chunk + CHUNK_HEADER_BYTES, usable, kind};
    return slot != NULL;
}

// Chunks from `at` to `end`; a chunk is free if the one behind it says so. What lies in fastbins
// and caches is found later.
static bool walk_chunks(struct walk *walk, uint64_t at, uint64_t end) {
    uint64_t word, behind;
    while (at < end) {
        if (!memory_window_word(&walk->window, at + WORD, &word)) break;
        const uint64_t size = chunk_walk_bytes(word, at, end);
        if (!size) return true;
        if (size == CHUNK_BROKEN) break;
        if (!memory_window_word(&walk->window, at + size + WORD, &behind)) break;
        enum chunk_kind kind = behind & CHUNK_USED_BEFORE ? CHUNK_USED : CHUNK_BINNED;
        if (!add_chunk(walk, at, size - WORD, kind)) return false;
        at += size;
    }
    if (at != end) walk->heap->broken_count++;
    return true;
}

// The kernel joins neighbours, so one may follow the other, or something else.
static bool walk_mapped(struct walk *walk, const struct stretch *stretch) {
    const uint64_t page_bytes = walk->view->page_bytes, start = stretch->start;
    uint64_t at = start > walk->mapped_until ? start : walk->mapped_until;
    for (uint64_t words[2]; at + page_bytes <= stretch->end;) {
        if (!memory_window_word(&walk->window, at, &words[0]) ||
            !memory_window_word(&walk->window, at + WORD, &words[1]))
            return true;
        uint64_t least = at == start ? page_bytes : CHUNK_MAPPED_LEAST;
        uint64_t size = chunk_mapped_bytes(words, page_bytes, least, stretch->reach - at);
        if (size && !add_chunk(walk, at, size - CHUNK_HEADER_BYTES, CHUNK_MAPPED)) return false;
        at += size ? size : page_bytes;
        if (size) walk->mapped_until = at;
        place_done(walk);
    }
    return true;
}

// --- where chunks lie

static bool add_range(struct walk *walk, const struct glibc_range *range) {
    struct glibc_range *slot = array_push(&walk->heap->ranges);
    if (slot) *slot = *range;
    return slot != NULL;
}

static uint64_t top_bytes(const struct walk *walk, const struct arena *arena) {
    uint64_t word = 0;
    memory_read_word(&walk->view->reader, arena->top + WORD, &word);
    return word & ~(uint64_t)CHUNK_FLAGS;
}

// Where memory without a gap begins that a segment ends, as far back as an address: what brk adds
// after a fork, as of daemons, is a mapping of its own.
static uint64_t start_of_neighbours(const struct walk *walk, const struct memory_segment *segment,
                                    uint64_t wanted) {
    while (segment > walk->view->segments && segment->start > wanted) {
        const struct memory_segment *before = segment - 1;
        bool is_whole = before->bytes == before->end - before->start;
        if (before->end != segment->start || !before->is_writable || !is_whole) break;
        segment = before;
    }
    return segment->start;
}

// The main arena grows by brk: its bytes end with the top chunk. What lies before them is not
// malloc's: a program that is linked statically has the main thread's own area there.
static bool find_main(struct walk *walk, const struct arena *arena) {
    const struct memory_segment *segment =
        memory_segment_of(walk->view->segments, walk->view->segment_count, arena->top);
    // before its first chunk an arena's top is a place in itself
    if (arena->top == arena_bin_head(arena, 0)) return true;
    uint64_t end = arena->top + top_bytes(walk, arena), bytes = arena->system_bytes;
    walk->heap->top_bytes += end - arena->top;
    if (!segment) return true;
    uint64_t start = bytes < end ? start_of_neighbours(walk, segment, end - bytes) : segment->start;
    bool is_whole = end <= segment->end && bytes >= end - arena->top &&
                    bytes % CHUNK_HEADER_BYTES == 0 && bytes <= end - start;
    if (!is_whole) start = segment->start;
    if (end > segment->end || end < arena->top) end = segment->end;
    return add_range(walk, &(struct glibc_range){start, end, arena->top, arena->address, true,
                                                 is_whole ? end - bytes : start});
}

static uint64_t align_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}

// A thread's arena has heaps of at most 64 MiB, aligned to that; each names its arena and the heap
// before. The first one holds the arena itself.
static bool find_heaps(struct walk *walk, const struct arena *arena) {
    const uint64_t first_heap = arena->address / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES;
    const uint64_t info_bytes = arena->address - first_heap;
    uint64_t heap = arena->top / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES;
    walk->heap->top_bytes += top_bytes(walk, arena);
    for (unsigned i = 0; i < HEAPS_MAX && heap; i++) {
        struct arena_heap info;
        if (!memory_read(&walk->view->reader, heap, &info, sizeof info) ||
            info.arena != arena->address || info.bytes > ARENA_HEAP_BYTES)
            break;
        uint64_t start = heap == first_heap ? arena->end : heap + info_bytes;
        uint64_t end = heap + info.bytes;
        if (!add_range(walk, &(struct glibc_range){heap, end, i ? end : arena->top, arena->address,
                                                   false, align_up(start, CHUNK_HEADER_BYTES)}))
            return false;
        heap = heap == first_heap ? 0 : info.previous;
    }
    if (heap) walk->heap->broken_count++;
    return true;
}

// Whichever arena was found first: that of a thread lies in its own first heap.
static bool find_ranges(struct walk *walk, const struct arena *arena) {
    uint64_t owner = 0;
    memory_read_word(&walk->view->reader, arena->address / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES,
                     &owner);
    return owner == arena->address ? find_heaps(walk, arena) : find_main(walk, arena);
}

// --- free chunks in lists

// glibc keeps them in single-linked lists and leaves them marked as in use: fastbins, and each
// thread's cache (since 2.26). From 2.32 on a link is XORed with its own address / 4096.

enum {
    FASTBINS = 10,
    CACHE_BINS = CHUNK_CACHE_BINS,
    CHAIN_MAX = 1 << 20,
    PROTECT_SHIFT = 12,
    RIGHT_LISTS_LEAST = 8,
};

static struct glibc_chunk *find_chunk(const struct glibc_heap *heap, uint64_t address) {
    const struct glibc_chunk *chunk = glibc_chunk_of(heap, address);
    bool is_found = chunk && chunk->address == address;
    return is_found ? &heap->chunks.items[chunk - heap->chunks.items] : NULL;
}

enum link { LINK_XORED = 1, LINK_PLAIN = 2, LINK_EITHER = LINK_XORED | LINK_PLAIN };

// The block behind the link that lies in `address`. 0: the end, or nothing that makes sense. On a
// heap at low addresses, as of programs that are not position-independent, a XORed link may look
// like a plain one to another block, and its end is far from any.
static uint64_t follow(const struct memory_reader *memory, const struct glibc_heap *heap,
                       enum link link, uint64_t address, uint64_t bias) {
    uint64_t word;
    if (!memory_read(memory, address, &word, sizeof word)) return 0;
    uint64_t plain = word + bias, xored = (word ^ address >> PROTECT_SHIFT) + bias;
    if (link & LINK_XORED && (xored == bias || find_chunk(heap, xored)))
        return xored == bias ? 0 : xored;
    return link & LINK_PLAIN && word && find_chunk(heap, plain) ? plain : 0;
}

static void mark(const struct glibc_heap *heap, uint64_t address, enum chunk_kind kind) {
    struct glibc_chunk *chunk = find_chunk(heap, address);
    if (chunk && chunk->kind == CHUNK_USED) chunk->kind = kind;
}

// Marks the chunks in an arena's fastbins, which are at that address; the heap's chunks are sorted.
static void mark_fast(const struct memory_reader *memory, struct glibc_heap *heap,
                      uint64_t fastbins) {
    uint64_t heads[FASTBINS];
    if (!memory_read(memory, fastbins, heads, sizeof heads)) return;
    for (unsigned i = 0; i < FASTBINS; i++) {
        // fastbins link chunks, whose blocks begin behind a header
        uint64_t block = heads[i] ? heads[i] + CHUNK_HEADER_BYTES : 0;
        for (unsigned step = 0; block && step < CHAIN_MAX; step++) {
            const struct glibc_chunk *chunk = find_chunk(heap, block);
            if (!chunk || chunk->kind != CHUNK_USED) break;
            mark(heap, block, CHUNK_FAST);
            block = follow(memory, heap, LINK_EITHER, block, CHUNK_HEADER_BYTES);
        }
    }
}

// How many blocks the list has, at most `most` + 1.
static uint64_t chain_length(const struct memory_reader *memory, const struct glibc_heap *heap,
                             enum link link, uint64_t block, uint64_t most) {
    uint64_t length = 0;
    for (; block && length <= most && find_chunk(heap, block); length++)
        block = follow(memory, heap, link, block, 0);
    return length;
}

struct cache {
    uint64_t counts[CACHE_BINS], heads[CACHE_BINS];
};

static bool read_cache(const struct memory_reader *memory, const struct chunk_cache_form *form,
                       uint64_t address, struct cache *cache) {
    uint8_t counts[2 * CACHE_BINS];
    size_t bytes = (size_t)form->count_bytes * CACHE_BINS;
    if (!memory_read(memory, address, counts, bytes) ||
        !memory_read(memory, address + bytes, cache->heads, sizeof cache->heads))
        return false;
    for (unsigned i = 0; i < CACHE_BINS; i++)
        cache->counts[i] =
            form->count_bytes == 1 ? counts[i] : counts[2 * i] | (uint64_t)counts[2 * i + 1] << 8;
    return true;
}

// A thread that was stopped between changing a list and counting it leaves one that is one off;
// that is believed where other lists or the links of this one bear it out. If many lists do, so is
// one that leads nowhere.
static bool is_cache(const struct memory_reader *memory, const struct glibc_heap *heap,
                     enum link link, const struct cache *cache) {
    unsigned right = 0, near = 0, wrong = 0;
    bool is_linked = false;
    for (unsigned i = 0; i < CACHE_BINS; i++) {
        uint64_t count = cache->counts[i], head = cache->heads[i];
        uint64_t length = chain_length(memory, heap, link, head, count + 1);
        bool is_near = (length + 1 == count && (length || !head)) || length == count + 1;
        if (length == count && (length || !head))
            right += count > 0;
        else if (is_near)
            near++;
        else
            wrong++;
        if (near + wrong > 1) return false;
        is_linked = is_linked || (is_near && length > 1);
    }
    return wrong ? right >= RIGHT_LISTS_LEAST : !near || right > 0 || is_linked;
}

static void mark_cache(const struct memory_reader *memory, struct glibc_heap *heap, enum link link,
                       const struct cache *cache) {
    for (unsigned i = 0; i < CACHE_BINS; i++) {
        uint64_t block = cache->heads[i];
        for (uint64_t left = cache->counts[i] + 1; left && block; left--) {
            mark(heap, block, CHUNK_CACHED);
            block = follow(memory, heap, link, block, 0);
        }
    }
}

// Marks what is in the cache at that chunk, if it is one: known by its counts, which are those of
// its lists.
static void mark_if_cache(const struct memory_reader *memory, struct glibc_heap *heap,
                          const struct chunk_cache_form *form, uint64_t address) {
    struct cache cache;
    if (!read_cache(memory, form, address, &cache)) return;
    enum link link = is_cache(memory, heap, LINK_XORED, &cache) ? LINK_XORED : LINK_PLAIN;
    if (link == LINK_XORED || is_cache(memory, heap, LINK_PLAIN, &cache))
        mark_cache(memory, heap, link, &cache);
}

// Marks those in threads' caches. A cache is a block of a certain size on the heap.
static void mark_cached(const struct memory_reader *memory, struct glibc_heap *heap) {
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (chunk->kind != CHUNK_USED) continue;
        for (size_t k = 0; k < CHUNK_CACHE_FORMS; k++)
            if (chunk_may_be_cache(chunk->size, &chunk_cache_forms[k]))
                mark_if_cache(memory, heap, &chunk_cache_forms[k], chunk->address);
    }
}

// --- the whole heap

static int compare_addresses(const void *a, const void *b) {
    const struct glibc_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static int compare_ranges(const void *a, const void *b) {
    const struct glibc_range *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static int compare_stretches(const void *a, const void *b) {
    const struct stretch *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static bool add_stretch(struct walk *walk, const struct stretch *stretch) {
    struct stretch *slot = array_push(&walk->stretches);
    if (slot) *slot = *stretch;
    return slot != NULL;
}

// Finds the end of memory without a gap that begins with what arenas leave of a segment: madvise
// and mprotect cut a mapping in two, and a block lies in both.
static uint64_t reach_of(const struct walk *walk, const struct spans *arenas, size_t segment,
                         uint64_t end) {
    const struct memory_segment *segments = walk->view->segments;
    while (end == segments[segment].end && ++segment < walk->view->segment_count &&
           segments[segment].start == end && segments[segment].is_writable) {
        struct span gap;
        uint64_t at = end;
        if (!spans_gap(arenas, &at, segments[segment].end, &gap) || gap.start != end) break;
        end = gap.end;
    }
    return end;
}

// What arenas leave of the segments.
static bool find_mapped(struct walk *walk, const struct spans *arenas) {
    struct stretch stretch = {.is_mapped = true};
    for (size_t i = 0; i < walk->view->segment_count; i++) {
        const struct memory_segment *segment = &walk->view->segments[i];
        struct span gap;
        uint64_t at = segment->start, end = segment->start + segment->bytes;
        while (segment->is_writable && spans_gap(arenas, &at, end, &gap)) {
            stretch.start = gap.start;
            stretch.end = gap.end;
            if (stretch.reach < gap.end) stretch.reach = reach_of(walk, arenas, i, gap.end);
            if (!add_stretch(walk, &stretch)) return false;
        }
    }
    return true;
}

// Walked in the order of addresses, so that chunks need not be sorted.
static bool find_stretches(struct walk *walk) {
    const struct glibc_heap *heap = walk->heap;
    struct spans arenas = {0};
    bool is_ok = true;
    for (size_t i = 0; i < heap->ranges.count && is_ok; i++) {
        const struct glibc_range *range = &heap->ranges.items[i];
        is_ok = spans_add(&arenas, range->start, range->end) &&
                add_stretch(walk, &(struct stretch){range->first, range->top, 0, false});
    }
    spans_settle(&arenas);
    is_ok = is_ok && find_mapped(walk, &arenas);
    spans_free(&arenas);
    if (walk->stretches.count)
        qsort(walk->stretches.items, walk->stretches.count, sizeof *walk->stretches.items,
              compare_stretches);
    return is_ok;
}

static bool is_ascending(const struct glibc_heap *heap) {
    for (size_t i = 1; i < heap->chunks.count; i++)
        if (heap->chunks.items[i - 1].address > heap->chunks.items[i].address) return false;
    return true;
}

static bool read_arena(const struct walk *walk, size_t number, struct arena *arena) {
    return arenas_read(&walk->arenas, &walk->view->reader, walk->arenas.addresses.items[number],
                       BROKEN_BINS_MAX, arena);
}

static bool see_nothing(void *context, const struct arena *arena) {
    (void)context;
    (void)arena;
    return true;
}

static bool find_all_ranges(struct walk *walk,
                            bool (*see)(void *context, const struct arena *arena), void *context) {
    struct glibc_heap *heap = walk->heap;
    struct arena arena;
    bool is_ok = true;
    for (size_t i = 0; i < walk->arenas.addresses.count && is_ok; i++)
        is_ok = !read_arena(walk, i, &arena) || (find_ranges(walk, &arena) && see(context, &arena));
    if (heap->ranges.count)
        qsort(heap->ranges.items, heap->ranges.count, sizeof *heap->ranges.items, compare_ranges);
    return is_ok;
}

static bool walk_all(struct walk *walk) {
    struct glibc_heap *heap = walk->heap;
    struct arena arena;
    bool is_ok = find_all_ranges(walk, see_nothing, NULL) && find_stretches(walk);
    for (size_t i = 0; i < walk->stretches.count && is_ok; i++) {
        const struct stretch *stretch = &walk->stretches.items[i];
        is_ok = stretch->is_mapped ? walk_mapped(walk, stretch)
                                   : walk_chunks(walk, stretch->start, stretch->end);
    }
    heap->arena_count = walk->arenas.addresses.count;
    if (!is_ascending(heap))  // only where arenas contradict each other
        qsort(heap->chunks.items, heap->chunks.count, sizeof *heap->chunks.items,
              compare_addresses);
    for (size_t i = 0; i < walk->arenas.addresses.count; i++)
        if (read_arena(walk, i, &arena))
            mark_fast(&walk->view->reader, heap, arena.fastbins_address);
    mark_cached(&walk->view->reader, heap);
    return is_ok;
}

bool glibc_heap_read(const struct memory_view *view, struct glibc_heap *heap, struct error *error) {
    struct walk walk = {.view = view, .heap = heap};
    *heap = (struct glibc_heap){0};
    bool is_found = find_arenas(&walk);
    bool is_ok = is_found && memory_window_open(&walk.window, &view->reader) && walk_all(&walk);
    memory_window_close(&walk.window);
    arenas_free(&walk.arenas);
    array_free(&walk.stretches);
    if (is_ok) return true;
    glibc_heap_free(heap);
    return error_set(error, is_found ? "out of memory"
                                     : "its malloc heap could not be found: no arena of glibc's "
                                       "lies in the data of its modules");
}

bool glibc_heap_ranges(const struct memory_view *view, struct arenas *arenas,
                       struct glibc_heap *heap,
                       bool (*see)(void *context, const struct arena *arena), void *context) {
    struct walk walk = {.view = view, .heap = heap, .arenas = *arenas};
    *heap = (struct glibc_heap){0};
    bool is_known = arenas_find_again(&walk.arenas, &view->reader, BROKEN_BINS_MAX);
    bool is_ok = (is_known || find_arenas(&walk)) && find_all_ranges(&walk, see, context);
    *arenas = walk.arenas;
    return is_ok && heap->ranges.count;
}

void glibc_heap_free(struct glibc_heap *heap) {
    array_free(&heap->chunks);
    array_free(&heap->ranges);
    other_heap_free(&heap->other);
}
