// SPDX-License-Identifier: Apache-2.0
#include "tool/mimalloc/heap.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"

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
#define SEGMENT_MOST (UINT64_C(1) << 42)  // more than any machine has

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

enum { MASK_WORDS = SLICES / WORD_BITS };

// A segment (struct mi_segment_s). Each bit of its masks is a slice.
struct header {
    uint64_t memory[4];
    uint64_t may_decommit, decommit_expires;  // may_decommit: the lowest byte
    uint64_t pending[MASK_WORDS];             // slices that are given back later
    uint64_t committed[MASK_WORDS], abandoned_next;
    uint64_t next, abandoned, visits, used, cookie;
    uint64_t slices, own_slices;
    uint32_t kind, padding;
    uint64_t slice_entries, thread;
};
_Static_assert(sizeof(struct header) == 264, "layout");

struct segment {
    struct header header;
    struct slice slices[SLICES];
};

// A page and a segment that were read.
struct page_place {
    uint64_t address, bytes;  // of its slices
    uint64_t block_bytes;
    size_t segment;
};
struct segment_place {
    uint64_t address, bytes;
    uint64_t pending[MASK_WORDS];
    uint64_t expires_ms;
    bool is_in_use;  // a block is, or a page was not read
    bool has_emptied;
};

// Memory that looks like a segment without pages, which waits to be used again.
struct released {
    uint64_t address, cookie;
};

// A heap (struct mi_heap_s) of a thread.
struct heap_place {
    uint64_t address;
    uint64_t thread;  // of its segments; 0: they have none
};

struct reading {
    const struct memory_reader *memory;
    struct glibc_heap found;
    struct segment *segment;
    uint64_t address;  // of the segment
    uint64_t cookie;   // of the process: what a segment's cookie and address have in common
    ARRAY(struct heap_place) heaps;
    uint64_t strange_count;  // heaps that have another thread where theirs is
    ARRAY(struct released) released;
    ARRAY(struct page_place) pages;
    ARRAY(struct segment_place) segments;
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

enum page_state { PAGE_SOUND, PAGE_CHANGING, PAGE_TORN };

// Its thread may be between a list and its count, or between two heads of one list: one block, or
// none, is not where it will be.
static enum page_state mark_free(struct reading *reading, const struct page *page) {
    const struct slice *slice = page->slice;
    const uint64_t flags = 3, first = slice->free;
    const bool is_moving = first && first == slice->local_free;
    memset(reading->are_free, 0, ((size_t)slice->capacity / WORD_BITS + 1) * WORD);
    const uint64_t own = mark_list(reading, page, first);
    const uint64_t local = is_moving ? 0 : mark_list(reading, page, slice->local_free);
    const uint64_t others = mark_list(reading, page, slice->thread_free & ~flags);
    if (own == UINT64_MAX || local == UINT64_MAX || others == UINT64_MAX || others > slice->used)
        return PAGE_TORN;
    const uint64_t sum = slice->used + own + local, capacity = slice->capacity;
    if (sum == capacity && !is_moving) return PAGE_SOUND;
    return sum <= capacity + 1 && sum + 1 >= capacity ? PAGE_CHANGING : PAGE_TORN;
}

static bool note_heap(struct reading *reading, uint64_t heap) {
    for (size_t i = reading->heaps.count; i-- > 0;)
        if (reading->heaps.items[i].address == heap) return true;
    struct heap_place *slot = heap ? array_push(&reading->heaps) : NULL;
    if (slot) *slot = (struct heap_place){heap, reading->segment->header.thread};
    return slot || !heap;
}

static bool add_page(struct reading *reading, const struct slice *slice, size_t number) {
    const uint64_t bytes = (uint64_t)slice->slice_count * SLICE_BYTES;
    const bool is_small = slice->block_bytes >= WORD && slice->block_bytes <= SMALL_BYTES;
    const uint64_t offset = is_small ? SMALL_OFFSET : 0;
    const struct page page = {slice, reading->address + number * SLICE_BYTES + offset,
                              slice->block_bytes >= HUGE_BLOCK_BYTES ? bytes : slice->block_bytes};
    const bool is_page = page.block_bytes >= WORD && slice->capacity <= slice->reserved &&
                         page.block_bytes * slice->capacity <= bytes - offset &&
                         slice->used <= slice->capacity;
    const enum page_state state = is_page ? mark_free(reading, &page) : PAGE_TORN;
    reading->page_count++;
    reading->torn_count += state != PAGE_SOUND;
    if (state == PAGE_TORN) {
        reading->segments.items[reading->segments.count - 1].is_in_use = true;
        return true;
    }
    struct page_place *place = array_push(&reading->pages);
    if (!place) return false;
    *place = (struct page_place){reading->address + number * SLICE_BYTES, bytes, page.block_bytes,
                                 reading->segments.count - 1};
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
    if (header->slices > SEGMENT_MOST / SLICE_BYTES) return true;
    const uint64_t bytes = header->slices * SLICE_BYTES;
    struct segment_place *place = array_push(&reading->segments);
    if (!place || !spans_add(&other->memory, reading->address, reading->address + bytes))
        return false;
    *place = (struct segment_place){.address = reading->address, .bytes = bytes};
    place->expires_ms = header->decommit_expires;
    if ((uint8_t)header->may_decommit)
        memcpy(place->pending, header->pending, sizeof place->pending);
    for (uint64_t i = header->own_slices; i < header->slice_entries;) {
        const struct slice *slice = &reading->segment->slices[i];
        const uint64_t most = header->slices - i;
        if (!slice->slice_count || slice->slice_count > most) {
            reading->torn_count++;
            place->is_in_use = true;
            return true;
        }
        const uint64_t start = reading->address + i * SLICE_BYTES;
        const uint64_t slice_bytes = (uint64_t)slice->slice_count * SLICE_BYTES;
        bool is_ok = slice->block_bytes > 1
                         ? add_page(reading, slice, i)
                         : spans_add(&other->free_pages, start, start + slice_bytes);
        if (!is_ok) return false;
        if (slice->block_bytes <= 1) other->free_page_bytes += slice_bytes;
        i += slice->slice_count;
    }
    return true;
}

static bool is_released(const struct header *header) {
    return !header->used && header->cookie && header->own_slices == 1 && !header->thread &&
           header->slices == SLICES && header->slice_entries == SLICES && !header->kind;
}

static bool note_released(struct reading *reading, uint64_t address) {
    struct released *slot = array_push(&reading->released);
    if (slot) *slot = (struct released){address, reading->segment->header.cookie};
    return slot;
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
        if (!memory_read(reading->memory, at, header, sizeof *header)) continue;
        if (is_released(header) && !note_released(reading, at)) return false;
        if (!is_header(header) || !is_ours(reading, at, header->cookie) ||
            !memory_read(reading->memory, at, reading->segment, sizeof *reading->segment))
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

// The list is that of a heap, which other threads push to. Behind it the heap has its thread, or it
// is of another form: built with padding behind blocks, it has one list more.
static void mark_delayed(struct reading *reading, const struct heap_place *heap) {
    enum { LIST = 2840, THREAD = LIST + WORD };  // of struct mi_heap_s
    uint64_t at = 0, thread = heap->thread;
    memory_read_word(reading->memory, heap->address + LIST, &at);
    memory_read_word(reading->memory, heap->address + THREAD, &thread);
    if (heap->thread && thread != heap->thread) {
        reading->strange_count++;
        return;
    }
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

// --- what the blocks leave

static size_t first_chunk(const struct glibc_heap *heap, uint64_t address) {
    size_t low;
    search_first(low, heap->chunks.count, heap->chunks.items[low].address >= address);
    return low;
}

// Adds the blocks of a page to the sums of their size.
static bool sum_up(struct reading *reading, const struct page_place *page) {
    const struct glibc_heap *heap = &reading->found;
    const uint64_t end = page->address + page->bytes;
    struct other_heap *other = &reading->found.other;
    struct segment_place *segment = &reading->segments.items[page->segment];
    struct other_class *class = other_heap_class(other, page->block_bytes);
    uint64_t used = 0;
    if (!class) return false;
    class->page_bytes += page->bytes;
    for (size_t i = first_chunk(heap, page->address);
         i < heap->chunks.count && heap->chunks.items[i].address < end; i++) {
        used += heap->chunks.items[i].kind == CHUNK_USED;
        class->free += heap->chunks.items[i].kind == CHUNK_BINNED;
        class->cached += heap->chunks.items[i].kind == CHUNK_CACHED;
    }
    class->used += used;
    segment->is_in_use |= used;
    segment->has_emptied |= !used;
    return used || spans_add(&other->emptied, page->address, end);
}

// Adds what mi_collect(true) gives back of a segment, called by the thread whose it is: all of it
// if no block of it is in use. Else the slices that wait to be given back, which the first emptied
// page of it sets off once its time has come (decommit_delay), and without one nothing does.
static bool add_asked(struct reading *reading, const struct segment_place *segment) {
    struct other_heap *other = &reading->found.other;
    struct spans *asked = &other->asked;
    if (!segment->is_in_use)
        return spans_add(asked, segment->address, segment->address + segment->bytes);
    for (uint64_t i = 0; i < SLICES && segment->has_emptied; i++) {
        const uint64_t start = segment->address + i * SLICE_BYTES;
        if (!(segment->pending[i / WORD_BITS] >> i % WORD_BITS & 1)) continue;
        if (!spans_add(asked, start, start + SLICE_BYTES)) return false;
        if (segment->expires_ms > other->asked_from_ms) other->asked_from_ms = segment->expires_ms;
    }
    return true;
}

static bool add_released(struct reading *reading) {
    struct other_heap *other = &reading->found.other;
    bool is_ok = true;
    for (size_t i = 0; i < reading->released.count && is_ok; i++) {
        const struct released *released = &reading->released.items[i];
        const uint64_t start = released->address, end = start + MIMALLOC_SEGMENT_BYTES;
        if ((released->cookie ^ start) != reading->cookie) continue;
        is_ok = spans_add(&other->memory, start, end) &&
                spans_add(&other->free_pages, start, end) && spans_add(&other->asked, start, end);
        other->free_page_bytes += MIMALLOC_SEGMENT_BYTES;
    }
    return is_ok;
}

static bool find_what_is_free(struct reading *reading) {
    bool is_ok = add_released(reading);
    for (size_t i = 0; i < reading->pages.count && is_ok; i++)
        is_ok = sum_up(reading, &reading->pages.items[i]);
    for (size_t i = 0; i < reading->segments.count && is_ok; i++)
        is_ok = add_asked(reading, &reading->segments.items[i]);
    other_heap_settle(&reading->found.other);
    return is_ok;
}

static int compare(const void *a, const void *b) {
    const struct glibc_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

// Segments are read in order, and their pages: only damage leaves blocks that are not.
static void sort_chunks(struct glibc_heap *heap) {
    size_t sorted = 1;
    while (sorted < heap->chunks.count &&
           heap->chunks.items[sorted - 1].address <= heap->chunks.items[sorted].address)
        sorted++;
    if (sorted < heap->chunks.count)
        qsort(heap->chunks.items, heap->chunks.count, sizeof *heap->chunks.items, compare);
}

static bool read_all(struct reading *reading, const struct memory_view *view) {
    bool is_ok = true;
    for (size_t i = 0; i < view->segment_count && is_ok; i++)
        if (view->segments[i].is_writable) is_ok = add_segments_in(reading, &view->segments[i]);
    if (is_ok) sort_chunks(&reading->found);
    for (size_t i = 0; i < reading->heaps.count && is_ok; i++)
        mark_delayed(reading, &reading->heaps.items[i]);
    return is_ok && find_what_is_free(reading);
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
                    reading->torn_count <= reading->page_count / 8 + 1 &&
                    reading->strange_count <= reading->heaps.count / 8;
    if (is_found) {
        reading->found.broken_count += reading->torn_count + reading->strange_count;
        is_ok = glibc_heap_join(heap, &reading->found);
    }
    if (reading) {
        glibc_heap_free(&reading->found);
        array_free(&reading->heaps);
        array_free(&reading->released);
        array_free(&reading->pages);
        array_free(&reading->segments);
        free(reading->segment);
    }
    free(reading);
    if (!is_ok) return MIMALLOC_FAILED;
    return is_found ? MIMALLOC_FOUND : MIMALLOC_NONE;
}
