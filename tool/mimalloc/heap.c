// SPDX-License-Identifier: Apache-2.0
#include "tool/mimalloc/heap.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLICE_BYTES = 64 << 10,
    SLICES = 512,
    WORD = sizeof(uint64_t),
    WORD_BITS = 64,
    BLOCKS_MAX = 1 << 16,
    SMALL_BYTES = 1024,  // pages of blocks up to that do not begin with their slice ...
    SMALL_OFFSET = 384,  // ... but so much later
};
#define HUGE_BLOCK_BYTES (UINT64_C(2) << 30)
#define ADDRESS_MOST (UINT64_C(1) << 47)

// A slice (struct mi_page_s).
struct slice {
    uint32_t slice_count, slice_offset;
    uint8_t state;
    uint8_t unused;
    uint16_t capacity, reserved;
    uint8_t flags, retiring;
    uint64_t free;
    uint32_t used, block_bytes;
    uint64_t local_free, thread_free, heap;
    uint64_t others[3];
};
_Static_assert(sizeof(struct slice) == 80, "layout");

// A segment (struct mi_segment_s).
struct header {
    uint64_t memory[22], abandoned_next, next, abandoned, visits, used, cookie;
    uint64_t slices, own_slices;
    uint32_t kind, padding;
    uint64_t slice_entries, thread;
};
_Static_assert(sizeof(struct header) == 264, "layout");

struct segment {
    struct header header;
    struct slice slices[SLICES];
};

struct reading {
    const struct memory_reader *memory;
    struct glibc_heap found;
    struct segment *segment;
    uint64_t address;  // of the segment
    uint64_t cookie;   // of the process: what a segment's cookie and address have in common
    ARRAY(uint64_t) heaps;
    uint64_t page_count, torn_count;
    uint64_t are_free[BLOCKS_MAX / WORD_BITS];  // of the page at hand
};

static bool is_header(const struct header *header) {
    const uint64_t last = header->slice_entries;
    return header->used && header->cookie && header->own_slices == 1 && last && last <= SLICES &&
           header->kind <= 1 && header->used <= last && header->abandoned <= header->used &&
           (header->kind ? header->slices >= last : header->slices == SLICES);
}

bool mimalloc_is_segment(const struct memory_reader *memory, uint64_t address) {
    struct header header;
    return address % MIMALLOC_SEGMENT_BYTES == 0 &&
           memory_read(memory, address, &header, sizeof header) && is_header(&header);
}

// --- a page

struct page {
    const struct slice *slice;
    uint64_t start, block_bytes;
};

// Marks the blocks of a list as free. Returns how many there are; UINT64_MAX: it leads elsewhere.
static uint64_t mark_list(struct reading *reading, const struct page *page, uint64_t at) {
    uint64_t count = 0;
    while (at) {
        const uint64_t number = (at - page->start) / page->block_bytes;
        if (at < page->start || number >= page->slice->capacity ||
            (at - page->start) % page->block_bytes || count >= page->slice->capacity)
            return UINT64_MAX;
        uint64_t *word = &reading->are_free[number / WORD_BITS];
        const uint64_t bit = UINT64_C(1) << number % WORD_BITS;
        if (*word & bit) return UINT64_MAX;
        *word |= bit;
        count++;
        if (!memory_read_word(reading->memory, at, &at)) return UINT64_MAX;
    }
    return count;
}

// True if the page's lists and its counts agree.
static bool mark_free(struct reading *reading, const struct page *page) {
    const struct slice *slice = page->slice;
    const uint64_t flags = 3;
    memset(reading->are_free, 0, ((size_t)slice->capacity / WORD_BITS + 1) * WORD);
    const uint64_t own = mark_list(reading, page, slice->free);
    const uint64_t local = mark_list(reading, page, slice->local_free);
    const uint64_t others = mark_list(reading, page, slice->thread_free & ~flags);
    return own != UINT64_MAX && local != UINT64_MAX && others != UINT64_MAX &&
           others <= slice->used && slice->used + own + local == slice->capacity;
}

static bool note_heap(struct reading *reading, uint64_t heap) {
    for (size_t i = reading->heaps.count; i-- > 0;)
        if (reading->heaps.items[i] == heap) return true;
    uint64_t *slot = heap ? array_push(&reading->heaps) : NULL;
    if (slot) *slot = heap;
    return slot || !heap;
}

static bool add_page(struct reading *reading, const struct slice *slice, size_t number) {
    const uint64_t bytes = (uint64_t)slice->slice_count * SLICE_BYTES;
    const bool is_small = slice->block_bytes >= WORD && slice->block_bytes <= SMALL_BYTES;
    const uint64_t offset = is_small ? SMALL_OFFSET : 0;
    const struct page page = {slice, reading->address + number * SLICE_BYTES + offset,
                              slice->block_bytes >= HUGE_BLOCK_BYTES ? bytes : slice->block_bytes};
    reading->page_count++;
    if (page.block_bytes < WORD || page.block_bytes * slice->capacity > bytes - offset ||
        slice->capacity > slice->reserved || slice->used > slice->capacity ||
        !mark_free(reading, &page)) {
        reading->torn_count++;
        return true;
    }
    for (uint64_t i = 0; i < slice->capacity; i++) {
        bool is_free = reading->are_free[i / WORD_BITS] >> i % WORD_BITS & 1;
        struct glibc_chunk *slot = array_push(&reading->found.chunks);
        if (!slot) return false;
        *slot = (struct glibc_chunk){page.start + i * page.block_bytes, page.block_bytes,
                                     is_free ? CHUNK_BINNED : CHUNK_USED};
    }
    reading->found.other.page_bytes += bytes;
    return note_heap(reading, slice->heap);
}

// --- segments

static bool add_segment(struct reading *reading) {
    const struct header *header = &reading->segment->header;
    struct other_heap *other = &reading->found.other;
    const uint64_t bytes = header->slices * SLICE_BYTES;
    if (bytes > ADDRESS_MOST) return true;
    if (!spans_add(&other->memory, reading->address, reading->address + bytes)) return false;
    for (uint64_t i = header->own_slices; i < header->slice_entries;) {
        const struct slice *slice = &reading->segment->slices[i];
        const uint64_t most = header->slices - i;
        if (!slice->slice_count || slice->slice_count > most) {
            reading->torn_count++;
            return true;
        }
        if (slice->block_bytes > 1) {
            if (!add_page(reading, slice, i)) return false;
        } else {
            other->free_page_bytes += (uint64_t)slice->slice_count * SLICE_BYTES;
        }
        i += slice->slice_count;
    }
    return true;
}

// All segments have the same cookie of the process in theirs.
static bool is_ours(const struct reading *reading, uint64_t address, uint64_t cookie) {
    return !reading->cookie || (cookie ^ address) == reading->cookie;
}

static bool add_segments_in(struct reading *reading, const struct memory_segment *memory) {
    const uint64_t step = MIMALLOC_SEGMENT_BYTES, end = memory->start + memory->bytes;
    uint64_t at = (memory->start + step - 1) / step * step;
    for (; at < end && end - at >= sizeof *reading->segment; at += step) {
        struct header *header = &reading->segment->header;
        if (!mimalloc_is_segment(reading->memory, at) ||
            !memory_read(reading->memory, at, reading->segment, sizeof *reading->segment) ||
            !is_ours(reading, at, header->cookie))
            continue;
        reading->address = at;
        reading->cookie = header->cookie ^ at;
        if (!add_segment(reading)) return false;
    }
    return true;
}

// --- blocks that are on their way back

static struct glibc_chunk *chunk_of(const struct glibc_heap *heap, uint64_t address) {
    return (struct glibc_chunk *)glibc_chunk_of(heap, address);
}

// The list is that of a heap, which other threads push to.
static void mark_delayed(struct reading *reading, uint64_t heap) {
    enum { LIST = 2840 };  // of struct mi_heap_s
    uint64_t at = 0;
    memory_read_word(reading->memory, heap + LIST, &at);
    while (at) {
        struct glibc_chunk *chunk = chunk_of(&reading->found, at);
        if (!chunk || chunk->address != at || chunk->kind != CHUNK_USED ||
            !memory_read_word(reading->memory, at, &at)) {
            reading->found.broken_count++;
            return;
        }
        chunk->kind = CHUNK_CACHED;
    }
}

static int compare(const void *a, const void *b) {
    const struct glibc_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static bool read_all(struct reading *reading, const struct memory_view *view) {
    bool is_ok = true;
    for (size_t i = 0; i < view->segment_count && is_ok; i++)
        if (view->segments[i].is_writable) is_ok = add_segments_in(reading, &view->segments[i]);
    if (is_ok && reading->found.chunks.count)
        qsort(reading->found.chunks.items, reading->found.chunks.count,
              sizeof *reading->found.chunks.items, compare);
    for (size_t i = 0; i < reading->heaps.count && is_ok; i++)
        mark_delayed(reading, reading->heaps.items[i]);
    spans_settle(&reading->found.other.memory);
    return is_ok;
}

enum mimalloc_finding mimalloc_heap_add(const struct memory_view *view, struct glibc_heap *heap) {
    struct reading *reading = calloc(1, sizeof *reading);
    bool is_ok = reading && (reading->segment = malloc(sizeof *reading->segment));
    if (is_ok) {
        reading->memory = &view->reader;
        reading->found.other.name = "mimalloc";
        is_ok = read_all(reading, view);
    }
    bool is_found = is_ok && reading->page_count > reading->torn_count &&
                    reading->torn_count <= reading->page_count / 8 + 1;
    if (is_found) {
        reading->found.broken_count += reading->torn_count;
        is_ok = glibc_heap_join(heap, &reading->found);
    }
    if (reading) {
        glibc_heap_free(&reading->found);
        array_free(&reading->heaps);
        free(reading->segment);
    }
    free(reading);
    if (!is_ok) return MIMALLOC_FAILED;
    return is_found ? MIMALLOC_FOUND : MIMALLOC_NONE;
}
