// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "format/live_map.h"
#include "tool/glibc/arenas.h"
#include "tool/heap/windows_internal.h"
#include "tool/proc/pagemap.h"

enum { HEADER = CHUNK_HEADER_BYTES, WORD = 8 };
// Of a process that runs, whose bins are changed as they are read: that the circle of arenas closes
// is enough.
enum { BROKEN_BINS_MAX = ARENA_BINS, TRIES = 50 };
static const uint64_t stretch_bytes = 1ull << LIVE_LEAF_SHIFT;

// --- reading while it runs

static bool read_present(const void *context, uint64_t address, void *bytes, size_t size) {
    return remote_read_present(context, address, bytes, size);
}

struct memory_reader drawing_reader(const struct drawing *drawing) {
    return (struct memory_reader){.read = read_present, .context = drawing->remote};
}

// Memory page by page in as few calls as there are stretches of pages; what is not there is zero.
static void read_pages(const struct drawing *drawing, uint64_t start, uint8_t *out,
                       uint64_t bytes) {
    const uint64_t page_bytes = drawing_page_bytes(drawing);
    const size_t count = bytes / page_bytes;
    uint8_t flags[stretch_bytes / 4096];
    memset(out, 0, bytes);
    if (count > sizeof flags) return;
    pagemap_flags(&drawing->remote->pagemap, start, count, flags);
    for (size_t i = 0, from; i < count; i++) {
        if (!(flags[i] & (PAGE_RESIDENT | PAGE_OWN))) continue;
        for (from = i; i < count && flags[i] & (PAGE_RESIDENT | PAGE_OWN);) i++;
        remote_read(drawing->remote, start + from * page_bytes, out + from * page_bytes,
                    (i - from) * page_bytes);
    }
}

// --- windows of recorded blocks

static void note_large(struct drawing *drawing, uint64_t address, uint64_t size) {
    struct large_block *slot = array_push(&drawing->large);
    if (slot) *slot = (struct large_block){address, size};
    if (!slot) drawing->is_bad = true;
}

static void note_window(struct drawing *drawing, uint64_t start, uint64_t last, uint64_t end) {
    const size_t count = drawing->candidates.count;
    struct candidate *slot = count ? &drawing->candidates.items[count - 1] : NULL;
    if (!slot || slot->start != start) slot = array_push(&drawing->candidates);
    if (slot) *slot = (struct candidate){start, last, end};
    if (!slot) drawing->is_bad = true;
}

uint64_t drawing_size_by_head(const struct drawing *drawing, uint64_t address) {
    uint64_t word = 0;
    remote_read_present(drawing->remote, address - WORD, &word, sizeof word);
    const uint64_t size = word & ~(uint64_t)CHUNK_FLAGS;
    const uint64_t around = word & CHUNK_HAS_MAPPING ? HEADER : WORD;
    return size > around && size < CHUNK_SIZE_MOST ? size - around : 0;
}

// The block that was seen last, once it is known how far the next one is: a large one leaves room.
// Narrow slots do not have the size, and heads are only read where it matters.
static void settle_before(struct drawing *drawing, uint64_t next) {
    const uint64_t at = drawing->before;
    uint64_t size = drawing->before_end ? drawing->before_end - at : 0;
    if (!at) return;
    if (!size && next - at > WINDOW_BYTES) size = drawing_size_by_head(drawing, at);
    if (size >= WINDOW_BYTES)
        note_large(drawing, at, size);
    else
        note_window(drawing, round_down(at, WINDOW_BYTES), at, drawing->before_end);
    drawing->before = 0;
}

static void see_block(struct drawing *drawing, uint64_t address, uint64_t end) {
    settle_before(drawing, address);
    drawing->before = address;
    drawing->before_end = end;
}

static void scan_narrow(struct drawing *drawing, const struct block_stretch *stretch,
                        const uint8_t *slots) {
    bool is_extension = false;
    for (uint64_t i = 0; i < stretch_bytes >> LIVE_NARROW_SHIFT; i++) {
        uint32_t slot;
        memcpy(&slot, slots + i * sizeof slot, sizeof slot);
        bool is_block = slot && !is_extension;
        is_extension = is_block && (slot & LIVE_SLACK_ESCAPE) == LIVE_SLACK_ESCAPE;
        uint64_t half = (slot >> LIVE_HALF_SHIFT & 1) << (LIVE_NARROW_SHIFT - 1);
        if (is_block) see_block(drawing, stretch->start + (i << LIVE_NARROW_SHIFT) + half, 0);
    }
}

static void scan_wide(struct drawing *drawing, const struct block_stretch *stretch,
                      const uint8_t *slots) {
    const uint64_t count = stretch_bytes >> LIVE_WIDE_SHIFT;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t slot, size = 0;
        memcpy(&slot, slots + i * sizeof slot, sizeof slot);
        if (!slot) continue;
        const uint64_t address = stretch->start + (i << LIVE_WIDE_SHIFT) + stretch->odd;
        size = slot >> 32;
        if (size == LIVE_SIZE_ESCAPE && ++i < count)
            memcpy(&size, slots + i * sizeof slot, sizeof size);
        see_block(drawing, address, address + size);
    }
}

static int compare_candidates(const void *a, const void *b) {
    const struct candidate *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (left->last > right->last) - (left->last < right->last);
}

// Blocks at odd multiples of 8 come behind the others of their stretch.
static void merge_candidates(struct drawing *drawing) {
    struct candidate *items = drawing->candidates.items;
    size_t kept = 0;
    if (drawing->candidates.count)
        qsort(items, drawing->candidates.count, sizeof *items, compare_candidates);
    for (size_t i = 0; i < drawing->candidates.count; i++) {
        if (kept && items[kept - 1].start == items[i].start) kept--;
        items[kept++] = items[i];
    }
    drawing->candidates.count = kept;
}

bool drawing_scan_map(struct drawing *drawing) {
    bool is_wide = drawing->header->slot_bytes == sizeof(uint64_t);
    const uint64_t bytes = is_wide ? (stretch_bytes >> LIVE_WIDE_SHIFT) * sizeof(uint64_t)
                                   : (stretch_bytes >> LIVE_NARROW_SHIFT) * sizeof(uint32_t);
    uint8_t *slots = malloc(bytes);
    for (size_t i = 0; slots && i < drawing->heap.block_stretches.count; i++) {
        const struct block_stretch *stretch = &drawing->heap.block_stretches.items[i];
        read_pages(drawing, stretch->slots, slots, bytes);
        if (is_wide)
            scan_wide(drawing, stretch, slots);
        else
            scan_narrow(drawing, stretch, slots);
        if (is_wide) settle_before(drawing, UINT64_MAX);
    }
    settle_before(drawing, UINT64_MAX);
    free(slots);
    merge_candidates(drawing);
    return slots && !drawing->is_bad;
}

// --- windows of glibc's arenas

static void add_range(struct drawing *drawing, uint64_t start, uint64_t end, bool is_main) {
    struct glibc_range *slot = array_push(&drawing->ranges);
    if (slot) *slot = (struct glibc_range){.start = start, .end = end, .is_main = is_main};
    if (!slot) drawing->is_bad = true;
}

// Those with a page that is there.
static void scan_range(struct drawing *drawing, const struct glibc_range *range) {
    const uint64_t page_bytes = drawing_page_bytes(drawing);
    uint8_t flags[WINDOW_BYTES / 4096];
    for (uint64_t at = round_down(range->start, WINDOW_BYTES); at < range->end;
         at += WINDOW_BYTES) {
        const size_t count = WINDOW_BYTES > page_bytes ? WINDOW_BYTES / page_bytes : 1;
        bool has_any = false;
        pagemap_flags(&drawing->remote->pagemap, at, count, flags);
        for (size_t i = 0; i < count; i++) has_any |= flags[i] & PAGE_OWN;
        if (has_any) note_window(drawing, at, 0, 0);
    }
}

static void find_arena_heaps(struct drawing *drawing) {
    for (size_t i = 0; i < drawing->heap.places.count; i++) {
        const uint64_t at = drawing->heap.places.items[i];
        struct arena_heap info;
        if (at % ARENA_HEAP_BYTES ||
            !remote_read_present(drawing->remote, at, &info, sizeof info) ||
            !arena_heap_is_valid(&info, at, at + ARENA_HEAP_BYTES))
            continue;
        add_range(drawing, at, at + info.bytes, false);
    }
}

static void find_mapped(struct drawing *drawing) {
    for (size_t i = 0; i < drawing->heap.pieces.count; i++) {
        const struct piece *piece = &drawing->heap.pieces.items[i];
        for (uint64_t at = piece->start, size; piece->kind == PIECE_HEADS && at < piece->end;
             at += size) {
            uint64_t words[2] = {0};
            remote_read_present(drawing->remote, at, words, sizeof words);
            size = chunk_mapped_bytes(words, drawing_page_bytes(drawing),
                                      drawing_page_bytes(drawing), piece->end - at);
            if (size) note_large(drawing, at + HEADER, size - HEADER);
            if (!size) size = drawing_page_bytes(drawing);
        }
    }
}

// Where the main arena ends in what brk moves: with its top chunk, unless others moved it on.
static uint64_t end_of_main(const struct arenas *arenas, const struct memory_reader *memory,
                            const struct extent *extent) {
    for (size_t i = 0; i < arenas->addresses.count; i++) {
        struct arena arena;
        uint64_t word;
        bool is_main =
            arenas_read(arenas, memory, arenas->addresses.items[i], BROKEN_BINS_MAX, &arena) &&
            arena.top >= extent->start && arena.top < extent->end;
        if (!is_main || !memory_read_word(memory, arena.top + WORD, &word)) continue;
        uint64_t end = arena.top + (word & ~(uint64_t)CHUNK_FLAGS);
        // chunks are multiples of 16, whatever the program's memory says
        if (end > arena.top && end <= extent->end && end % HEADER == 0) return end;
    }
    return extent->end;
}

static bool find_arenas(struct arenas *arenas, const struct memory_reader *memory,
                        const struct extents *extents) {
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct extent *extent = &extents->items.items[i];
        if (extent->kind == EXTENT_DATA &&
            arenas_find(arenas, memory, extent->start, extent->end, BROKEN_BINS_MAX))
            return true;
    }
    return false;
}

static void find_main(struct drawing *drawing, const struct extents *extents) {
    const struct memory_reader memory = drawing_reader(drawing);
    struct arenas arenas = {0};
    for (unsigned i = 0; i < TRIES && !drawing->windows->has_arenas; i++)
        drawing->windows->has_arenas = find_arenas(&arenas, &memory, extents);
    for (size_t i = 0; i < extents->items.count; i++) {
        struct extent extent = extents->items.items[i];
        if (extent.kind != EXTENT_BREAK) continue;
        // what brk adds after a fork is a mapping of its own
        for (; i + 1 < extents->items.count && extents->items.items[i + 1].kind == EXTENT_BREAK &&
               extents->items.items[i + 1].start == extent.end;
             i++)
            extent.end = extents->items.items[i + 1].end;
        add_range(drawing, extent.start, end_of_main(&arenas, &memory, &extent), true);
    }
    arenas_free(&arenas);
}

bool drawing_scan_arenas(struct drawing *drawing, const struct extents *extents) {
    find_main(drawing, extents);
    find_arena_heaps(drawing);
    for (size_t i = 0; i < drawing->ranges.count; i++)
        scan_range(drawing, &drawing->ranges.items[i]);
    find_mapped(drawing);
    merge_candidates(drawing);
    return !drawing->is_bad;
}
