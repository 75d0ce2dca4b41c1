// SPDX-License-Identifier: Apache-2.0
#include "tool/core/glibc.h"

#include <string.h>

#include "tool/base/search.h"
#include "tool/core/glibc_lists.h"
#include "tool/core/spans.h"

enum {
    WORD = 8,
    HEADER = 2 * WORD,  // of a chunk: size of the one before, own size and flags
    CHUNK_LEAST = 32,
    FENCE = 16,  // size of the last chunk of a heap that is not its arena's newest
    BINS = 127,
    BINS_WORDS = 2 * BINS,
    // from an arena's bins
    FASTBINS_BEFORE = 12 * WORD,
    TOP_BEFORE = 2 * WORD,
    NEXT_BEHIND = (BINS_WORDS + 2) * WORD,
    SYSTEM_BYTES_BEHIND = NEXT_BEHIND + 3 * WORD,
    END_BEHIND = NEXT_BEHIND + 5 * WORD,
    BINS_AT = 14 * WORD,      // from an arena's start
    BINS_AT_OLD = 13 * WORD,  // before 2.27
    BROKEN_BINS_MAX = 2,
    EMPTY_BINS_LEAST = 4,  // those of the largest sizes hardly ever hold anything
    ARENAS_MAX = 4096,
    PAGE_BYTES = 4096,
};
static const uint64_t size_flags = 7, used_before_flag = 1, mapped_flag = 2,
                      heap_bytes = 64ull << 20, data_bytes_max = 4ull << 20,
                      mapped_bytes_min = 128ull << 10;  // mallopt(3), M_MMAP_THRESHOLD

struct arena {
    uint64_t address, bins, top;
};

// A stretch of memory that chunks fill, or where some with mappings of their own may lie.
struct span {
    uint64_t start, end;
    bool is_mapped;
};

struct walk {
    const struct core_image *core;
    struct core_window window;
    struct core_heap *heap;
    ARRAY(struct arena) arenas;
    ARRAY(struct span) spans;
    uint64_t bins_at;  // from an arena's start
};

bool chunk_is_free(const struct core_chunk *chunk) {
    return chunk->kind >= CHUNK_BINNED;
}

static bool read_word(const struct core_image *core, uint64_t address, uint64_t *word) {
    return core_read(core, address, word, sizeof *word);
}

// --- arenas

// Whether the words at `address` can be the bins of an arena: the circles of those that are not
// empty are looked at when the arena is.
static bool are_bins(const uint64_t *words, uint64_t address) {
    unsigned empty = 0;
    for (unsigned bin = 0; bin < BINS; bin++) {
        uint64_t head = address + (uint64_t)bin * HEADER - HEADER;
        bool is_empty = words[2 * bin] == head && words[2 * bin + 1] == head;
        if (is_empty) empty++;
        if (!is_empty && (!words[2 * bin] || words[2 * bin] % WORD)) return false;
        if (empty + (BINS - bin - 1) < EMPTY_BINS_LEAST) return false;
    }
    return true;
}

// First and last chunk of each bin point back to it; hardly ever not, where the process was stopped
// as it changed a bin.
static bool are_circles(const struct core_image *core, const uint64_t *words, uint64_t address) {
    unsigned broken = 0;
    for (unsigned bin = 0; bin < BINS; bin++) {
        uint64_t head = address + (uint64_t)bin * HEADER - HEADER, back, forward;
        if (words[2 * bin] == head) continue;
        if (!read_word(core, words[2 * bin] + HEADER + WORD, &back) ||
            !read_word(core, words[2 * bin + 1] + HEADER, &forward) || back != head ||
            forward != head)
            broken++;
        if (broken > BROKEN_BINS_MAX) return false;
    }
    return true;
}

static bool is_known(const struct walk *walk, uint64_t address) {
    for (size_t i = 0; i < walk->arenas.count; i++)
        if (walk->arenas.items[i].address == address) return true;
    return false;
}

// Follows the circle of arenas from one that is believed to be the first.
static bool follow_arenas(struct walk *walk, uint64_t first) {
    uint64_t bins[BINS_WORDS];
    walk->arenas.count = 0;
    for (uint64_t at = first; walk->arenas.count < ARENAS_MAX;) {
        struct arena arena = {.address = at, .bins = at + walk->bins_at};
        if (!core_read(walk->core, arena.bins, bins, sizeof bins) || !are_bins(bins, arena.bins) ||
            !are_circles(walk->core, bins, arena.bins))
            return false;
        if (!read_word(walk->core, arena.bins - TOP_BEFORE, &arena.top) ||
            !read_word(walk->core, arena.bins + NEXT_BEHIND, &at) || is_known(walk, arena.address))
            return false;
        struct arena *slot = array_push(&walk->arenas);
        if (!slot) return false;
        *slot = arena;
        if (at == first) return true;
    }
    return false;
}

static bool follow_bins(struct walk *walk, uint64_t bins) {
    static const uint64_t forms[] = {BINS_AT, BINS_AT_OLD};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        walk->bins_at = forms[i];
        if (follow_arenas(walk, bins - forms[i])) return true;
    }
    return false;
}

static bool find_in_segment(struct walk *walk, const struct core_segment *segment) {
    size_t count = (size_t)(segment->bytes / WORD);
    if (segment->bytes > data_bytes_max || count < BINS_WORDS) return false;
    uint64_t *words = malloc(count * WORD);
    bool is_found = false;
    bool is_read = words && core_read(walk->core, segment->start, words, count * WORD);
    for (size_t i = BINS_AT_OLD / WORD; is_read && !is_found && i + BINS_WORDS <= count; i++) {
        uint64_t address = segment->start + i * WORD;
        is_found = are_bins(words + i, address) && follow_bins(walk, address);
    }
    free(words);
    return is_found;
}

static bool find_arenas(struct walk *walk) {
    for (size_t i = 0; i < walk->core->segments.count; i++)
        if (find_in_segment(walk, &walk->core->segments.items[i])) return true;
    return false;
}

// --- chunks

static bool add_chunk(struct walk *walk, uint64_t chunk, uint64_t usable, enum chunk_kind kind) {
    if (chunk > CORE_ADDRESS_MOST || usable > CORE_SIZE_MOST) {
        walk->heap->broken_count++;
        return true;
    }
    struct core_chunk *slot = array_push(&walk->heap->chunks);
    if (slot) *slot = (struct core_chunk){chunk + HEADER, usable, kind};
    return slot != NULL;
}

// Chunks from `at` to `end`; a chunk is free if the one behind it says so. What lies in fastbins
// and caches is found later.
static bool walk_chunks(struct walk *walk, uint64_t at, uint64_t end) {
    uint64_t word, behind;
    while (at < end) {
        if (!core_window_word(&walk->window, at + WORD, &word)) break;
        uint64_t size = word & ~size_flags;
        if (size <= FENCE && at + HEADER + WORD >= end - PAGE_BYTES) return true;  // a heap's end
        if (size == FENCE) return true;
        if (size < CHUNK_LEAST || size % HEADER || size > end - at) break;
        if (!core_window_word(&walk->window, at + size + WORD, &behind)) break;
        enum chunk_kind kind = behind & used_before_flag ? CHUNK_USED : CHUNK_BINNED;
        if (!add_chunk(walk, at, size - WORD, kind)) return false;
        at += size;
    }
    if (at != end) walk->heap->broken_count++;
    return true;
}

// The kernel joins neighbours, so one may follow the other, or something else.
static bool walk_mapped(struct walk *walk, uint64_t at, uint64_t end) {
    for (uint64_t start = at, words[2]; at + PAGE_BYTES <= end;) {
        if (!core_window_word(&walk->window, at, &words[0]) ||
            !core_window_word(&walk->window, at + WORD, &words[1]))
            return true;
        uint64_t size = words[1] & ~size_flags, least = at == start ? PAGE_BYTES : mapped_bytes_min;
        bool is_chunk = !words[0] && (words[1] & size_flags) == mapped_flag && size >= least &&
                        size % PAGE_BYTES == 0 && size <= end - at;
        if (is_chunk && !add_chunk(walk, at, size - HEADER, CHUNK_MAPPED)) return false;
        at += is_chunk ? size : PAGE_BYTES;
        core_looked_at(walk->core, 0, &walk->window.places);
    }
    return true;
}

// --- where chunks lie

static bool add_range(struct walk *walk, const struct core_heap_range *range) {
    struct core_heap_range *slot = array_push(&walk->heap->ranges);
    if (slot) *slot = *range;
    return slot != NULL;
}

static uint64_t top_bytes(const struct walk *walk, const struct arena *arena) {
    uint64_t word = 0;
    read_word(walk->core, arena->top + WORD, &word);
    return word & ~size_flags;
}

// The main arena grows by brk: its bytes end with the top chunk. What lies before them is not
// malloc's: a program that is linked statically has the main thread's own area there.
static bool find_main(struct walk *walk, const struct arena *arena) {
    const struct core_segment *segment = core_segment_of(walk->core, arena->top);
    // before its first chunk an arena's top is a place in itself
    if (arena->top == arena->bins - HEADER) return true;
    uint64_t end = arena->top + top_bytes(walk, arena), bytes = 0;
    walk->heap->top_bytes += end - arena->top;
    if (!segment) return true;
    read_word(walk->core, arena->bins + SYSTEM_BYTES_BEHIND, &bytes);
    bool is_whole = end <= segment->end && bytes >= end - arena->top && bytes % HEADER == 0 &&
                    bytes <= end - segment->start;
    if (end > segment->end || end < arena->top) end = segment->end;
    return add_range(walk,
                     &(struct core_heap_range){segment->start, end, arena->top, arena->address,
                                               true, is_whole ? end - bytes : segment->start});
}

static uint64_t align_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}

// A thread's arena has heaps of at most 64 MiB, aligned to that; each names its arena and the heap
// before. The first one holds the arena itself.
static bool find_heaps(struct walk *walk, const struct arena *arena) {
    const uint64_t first_heap = arena->address / heap_bytes * heap_bytes;
    const uint64_t info_bytes = arena->address - first_heap;
    uint64_t heap = arena->top / heap_bytes * heap_bytes;
    walk->heap->top_bytes += top_bytes(walk, arena);
    for (unsigned i = 0; i < ARENAS_MAX && heap; i++) {
        uint64_t info[3];  // arena, heap before, bytes
        if (!core_read(walk->core, heap, info, sizeof info) || info[0] != arena->address) break;
        if (info[2] > heap_bytes) break;
        uint64_t start = heap == first_heap ? arena->bins + END_BEHIND : heap + info_bytes;
        uint64_t end = heap + info[2];
        if (!add_range(walk,
                       &(struct core_heap_range){heap, end, i ? end : arena->top, arena->address,
                                                 false, align_up(start, HEADER)}))
            return false;
        heap = heap == first_heap ? 0 : info[1];
    }
    if (heap) walk->heap->broken_count++;
    return true;
}

// Whichever arena was found first: that of a thread lies in its own first heap.
static bool find_ranges(struct walk *walk, const struct arena *arena) {
    uint64_t owner = 0;
    read_word(walk->core, arena->address / heap_bytes * heap_bytes, &owner);
    return owner == arena->address ? find_heaps(walk, arena) : find_main(walk, arena);
}

// --- the whole heap

static int compare_addresses(const void *a, const void *b) {
    const struct core_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static int compare_ranges(const void *a, const void *b) {
    const struct core_heap_range *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static int compare_spans(const void *a, const void *b) {
    const struct span *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static bool add_span(struct walk *walk, uint64_t start, uint64_t end, bool is_mapped) {
    struct span *slot = array_push(&walk->spans);
    if (slot) *slot = (struct span){start, end, is_mapped};
    return slot != NULL;
}

// What arenas leave of the segments.
static bool find_mapped(struct walk *walk, const struct core_spans *arenas) {
    for (size_t i = 0; i < walk->core->segments.count; i++) {
        const struct core_segment *segment = &walk->core->segments.items[i];
        struct core_span gap;
        uint64_t at = segment->start, end = segment->start + segment->bytes;
        while (segment->is_writable && core_spans_gap(arenas, &at, end, &gap))
            if (!add_span(walk, gap.start, gap.end, true)) return false;
    }
    return true;
}

// Walked in the order of addresses, so that chunks need not be sorted.
static bool find_spans(struct walk *walk) {
    const struct core_heap *heap = walk->heap;
    struct core_spans arenas = {0};
    bool is_ok = true;
    for (size_t i = 0; i < heap->ranges.count && is_ok; i++) {
        const struct core_heap_range *range = &heap->ranges.items[i];
        is_ok = core_spans_add(&arenas, range->start, range->end) &&
                add_span(walk, range->first, range->top, false);
    }
    core_spans_settle(&arenas);
    is_ok = is_ok && find_mapped(walk, &arenas);
    core_spans_free(&arenas);
    if (walk->spans.count)
        qsort(walk->spans.items, walk->spans.count, sizeof *walk->spans.items, compare_spans);
    return is_ok;
}

static bool is_ascending(const struct core_heap *heap) {
    for (size_t i = 1; i < heap->chunks.count; i++)
        if (heap->chunks.items[i - 1].address > heap->chunks.items[i].address) return false;
    return true;
}

static bool walk_all(struct walk *walk) {
    struct core_heap *heap = walk->heap;
    bool is_ok = true;
    for (size_t i = 0; i < walk->arenas.count && is_ok; i++)
        is_ok = find_ranges(walk, &walk->arenas.items[i]);
    if (heap->ranges.count)
        qsort(heap->ranges.items, heap->ranges.count, sizeof *heap->ranges.items, compare_ranges);
    is_ok = is_ok && find_spans(walk);
    for (size_t i = 0; i < walk->spans.count && is_ok; i++) {
        const struct span *span = &walk->spans.items[i];
        is_ok = span->is_mapped ? walk_mapped(walk, span->start, span->end)
                                : walk_chunks(walk, span->start, span->end);
    }
    heap->arena_count = walk->arenas.count;
    if (!is_ascending(heap))  // only where arenas contradict each other
        qsort(heap->chunks.items, heap->chunks.count, sizeof *heap->chunks.items,
              compare_addresses);
    for (size_t i = 0; i < walk->arenas.count; i++)
        glibc_mark_fast(walk->core, heap, walk->arenas.items[i].bins - FASTBINS_BEFORE);
    glibc_mark_cached(walk->core, heap);
    return is_ok;
}

bool core_read_heap(const struct core_image *core, struct core_heap *heap, struct error *error) {
    struct walk walk = {.core = core, .heap = heap};
    *heap = (struct core_heap){0};
    bool is_found = find_arenas(&walk);
    bool is_ok = is_found && core_window_open(&walk.window, core) && walk_all(&walk);
    core_window_close(&walk.window);
    array_free(&walk.arenas);
    array_free(&walk.spans);
    if (is_ok) return true;
    core_free_heap(heap);
    return error_set(error, is_found ? "out of memory"
                                     : "no heap of glibc's malloc was found in it: another "
                                       "allocator, or a core without that memory");
}

void core_free_heap(struct core_heap *heap) {
    array_free(&heap->chunks);
    array_free(&heap->ranges);
}

const struct core_chunk *core_chunk_of(const struct core_heap *heap, uint64_t address) {
    size_t low;
    search_first(low, heap->chunks.count, heap->chunks.items[low].address > address);
    const struct core_chunk *chunk = low ? &heap->chunks.items[low - 1] : NULL;
    bool is_inside = chunk && (address == chunk->address || address - chunk->address < chunk->size);
    return is_inside ? chunk : NULL;
}
