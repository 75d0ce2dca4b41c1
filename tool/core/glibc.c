// SPDX-License-Identifier: Apache-2.0
#include "tool/core/glibc.h"

#include <string.h>

#include "tool/core/glibc_lists.h"

enum {
    WORD = 8,
    HEADER = 2 * WORD,  // of a chunk: size of the one before, own size and flags
    CHUNK_LEAST = 32,
    FENCE = 16,  // size of the last chunk of a heap that is not its arena's newest
    BINS = 127,
    BINS_AT = 112,  // from an arena's start
    BINS_WORDS = 2 * BINS,
    TOP_AT = BINS_AT - 2 * WORD,
    NEXT_AT = BINS_AT + (BINS_WORDS + 2) * WORD,
    ARENA_BYTES = NEXT_AT + 5 * WORD,
    EMPTY_BINS_LEAST = 4,  // those of the largest sizes hardly ever hold anything
    ARENAS_MAX = 4096,
    PAGE_BYTES = 4096,
};
static const uint64_t size_flags = 7, used_before_flag = 1, mapped_flag = 2,
                      heap_bytes = 64ull << 20, data_bytes_max = 4ull << 20;

struct arena {
    uint64_t address, top;
};

struct walk {
    const struct core_image *core;
    struct core_heap *heap;
    ARRAY(struct arena) arenas;
};

bool chunk_is_free(const struct core_chunk *chunk) {
    return chunk->kind >= CHUNK_BINNED;
}

static bool read_word(const struct core_image *core, uint64_t address, uint64_t *word) {
    return core_read(core, address, word, sizeof *word);
}

// --- arenas

// Whether the words can be the bins of an arena that begins BINS_AT before `address`: the circles
// of those that are not empty are looked at when the arena is.
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

// First and last chunk of each bin point back to it.
static bool are_circles(const struct core_image *core, const uint64_t *words, uint64_t address) {
    for (unsigned bin = 0; bin < BINS; bin++) {
        uint64_t head = address + (uint64_t)bin * HEADER - HEADER, back, forward;
        if (words[2 * bin] == head) continue;
        if (!read_word(core, words[2 * bin] + HEADER + WORD, &back) ||
            !read_word(core, words[2 * bin + 1] + HEADER, &forward) || back != head ||
            forward != head)
            return false;
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
        struct arena arena = {.address = at};
        if (!core_read(walk->core, at + BINS_AT, bins, sizeof bins) ||
            !are_bins(bins, at + BINS_AT) || !are_circles(walk->core, bins, at + BINS_AT))
            return false;
        if (!read_word(walk->core, at + TOP_AT, &arena.top) ||
            !read_word(walk->core, at + NEXT_AT, &at) || is_known(walk, arena.address))
            return false;
        struct arena *slot = array_push(&walk->arenas);
        if (!slot) return false;
        *slot = arena;
        if (at == first) return true;
    }
    return false;
}

static bool find_in_segment(struct walk *walk, const struct core_segment *segment) {
    size_t count = (size_t)(segment->bytes / WORD);
    if (segment->bytes > data_bytes_max || count < BINS_WORDS) return false;
    uint64_t *words = malloc(count * WORD);
    bool is_found = false;
    bool is_read = words && core_read(walk->core, segment->start, words, count * WORD);
    for (size_t i = BINS_AT / WORD; is_read && !is_found && i + BINS_WORDS <= count; i++) {
        uint64_t address = segment->start + i * WORD;
        is_found = are_bins(words + i, address) && follow_arenas(walk, address - BINS_AT);
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
    struct core_chunk *slot = array_push(&walk->heap->chunks);
    if (slot) *slot = (struct core_chunk){chunk + HEADER, usable, kind};
    return slot != NULL;
}

// Chunks from `at` to `end`; a chunk is free if the one behind it says so. What lies in fastbins
// and caches is found later.
static bool walk_chunks(struct walk *walk, uint64_t at, uint64_t end) {
    uint64_t word, behind;
    while (at < end) {
        if (!read_word(walk->core, at + WORD, &word)) break;
        uint64_t size = word & ~size_flags;
        if (size <= FENCE && at + HEADER + WORD >= end - PAGE_BYTES) return true;  // a heap's end
        if (size == FENCE) return true;
        if (size < CHUNK_LEAST || size % HEADER || size > end - at) break;
        if (!read_word(walk->core, at + size + WORD, &behind)) break;
        enum chunk_kind kind = behind & used_before_flag ? CHUNK_USED : CHUNK_BINNED;
        if (!add_chunk(walk, at, size - WORD, kind)) return false;
        at += size;
    }
    if (at != end) walk->heap->broken_count++;
    return true;
}

static void add_top(struct walk *walk, const struct arena *arena) {
    uint64_t word;
    if (read_word(walk->core, arena->top + WORD, &word))
        walk->heap->top_bytes += word & ~size_flags;
}

// The main arena grows by brk: from the start of that memory to the top chunk.
static bool walk_main(struct walk *walk, const struct arena *arena) {
    const struct core_segment *segment = core_segment_of(walk->core, arena->top);
    add_top(walk, arena);
    return !segment || walk_chunks(walk, segment->start, arena->top);
}

static uint64_t align_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}

// A thread's arena has heaps of at most 64 MiB, aligned to that; each names its arena and the heap
// before. The first one holds the arena itself.
static bool walk_heaps(struct walk *walk, const struct arena *arena) {
    const uint64_t first_heap = arena->address / heap_bytes * heap_bytes;
    const uint64_t info_bytes = arena->address - first_heap;
    uint64_t heap = arena->top / heap_bytes * heap_bytes, end = arena->top;
    add_top(walk, arena);
    for (unsigned i = 0; i < ARENAS_MAX && heap; i++) {
        uint64_t info[3];  // arena, heap before, bytes
        if (!core_read(walk->core, heap, info, sizeof info) || info[0] != arena->address) break;
        if (i) end = heap + info[2];
        uint64_t start = heap == first_heap ? arena->address + ARENA_BYTES : heap + info_bytes;
        if (end - heap > heap_bytes || !walk_chunks(walk, align_up(start, HEADER), end))
            return false;
        heap = heap == first_heap ? 0 : info[1];
    }
    if (heap) walk->heap->broken_count++;
    return true;
}

// Whichever arena was found first: that of a thread lies in its own first heap.
static bool walk_arena(struct walk *walk, const struct arena *arena) {
    uint64_t owner = 0;
    read_word(walk->core, arena->address / heap_bytes * heap_bytes, &owner);
    return owner == arena->address ? walk_heaps(walk, arena) : walk_main(walk, arena);
}

// --- chunks with mappings of their own

static bool is_of_arena(const struct walk *walk, const struct core_segment *segment) {
    for (size_t i = 0; i < walk->arenas.count; i++) {
        const struct arena *arena = &walk->arenas.items[i];
        if (arena->top >= segment->start && arena->top < segment->end) return true;
        if (arena->address >= segment->start && arena->address < segment->end) return true;
    }
    return false;
}

// The kernel joins neighbours, so one may follow the other from the segment's start on.
static bool walk_mapped(struct walk *walk, const struct core_segment *segment) {
    uint64_t at = segment->start, end = segment->start + segment->bytes, words[2];
    while (at + PAGE_BYTES <= end && core_read(walk->core, at, words, sizeof words)) {
        uint64_t size = words[1] & ~size_flags;
        bool is_chunk = (words[1] & size_flags) == mapped_flag && size >= PAGE_BYTES &&
                        size % PAGE_BYTES == 0 && size <= end - at && !words[0];
        if (!is_chunk) return true;
        if (!add_chunk(walk, at, size - HEADER, CHUNK_MAPPED)) return false;
        at += size;
    }
    return true;
}

static int compare_addresses(const void *a, const void *b) {
    const struct core_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static bool walk_all(struct walk *walk) {
    bool is_ok = true;
    for (size_t i = 0; i < walk->arenas.count && is_ok; i++)
        is_ok = walk_arena(walk, &walk->arenas.items[i]);
    for (size_t i = 0; i < walk->core->segments.count && is_ok; i++) {
        const struct core_segment *segment = &walk->core->segments.items[i];
        if (!is_of_arena(walk, segment)) is_ok = walk_mapped(walk, segment);
    }
    struct core_heap *heap = walk->heap;
    heap->arena_count = walk->arenas.count;
    if (heap->chunks.count)
        qsort(heap->chunks.items, heap->chunks.count, sizeof *heap->chunks.items,
              compare_addresses);
    for (size_t i = 0; i < walk->arenas.count; i++)
        glibc_mark_fast(walk->core, heap, walk->arenas.items[i].address);
    glibc_mark_cached(walk->core, heap);
    return is_ok;
}

bool core_read_heap(const struct core_image *core, struct core_heap *heap, struct error *error) {
    struct walk walk = {.core = core, .heap = heap};
    *heap = (struct core_heap){0};
    bool is_found = find_arenas(&walk);
    bool is_ok = is_found && walk_all(&walk);
    array_free(&walk.arenas);
    if (is_ok) return true;
    core_free_heap(heap);
    return error_set(error, is_found ? "out of memory"
                                     : "no heap of glibc's malloc was found in it: another "
                                       "allocator, or a core without that memory");
}

void core_free_heap(struct core_heap *heap) {
    array_free(&heap->chunks);
}
