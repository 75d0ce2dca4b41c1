// SPDX-License-Identifier: Apache-2.0
#include "tool/glibc/heads.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/glibc/chunks.h"

enum {
    WORD = 8,
    HEADER = CHUNK_HEADER_BYTES,
    HEAD_END = HEADER + WORD,  // behind the words that are kept, from a chunk's start
    INDEX_STEP = 256,
    CACHE_BYTES_MOST = CHUNK_CACHE_BINS * (2 + WORD),
    CACHE_WRONG_MOST = 1,  // bins whose count and link contradict each other, in a real cache
};
static const uint64_t near_bytes = 64 << 10;

struct taking {
    struct heap_heads *heads;
    const struct memory_view *view;
    struct memory_window window;
    bool is_bad;  // no memory
};

// --- memory that is kept as it was

static bool keep_run(struct heap_heads *heads, uint64_t address, const void *bytes, size_t size) {
    struct head_run *run = array_push(&heads->runs);
    if (!run) return false;
    *run = (struct head_run){address, heads->bytes.count, size};
    for (size_t i = 0; i < size; i++) {
        uint8_t *slot = array_push(&heads->bytes);
        if (!slot) return false;
        *slot = ((const uint8_t *)bytes)[i];
    }
    return true;
}

static bool keep_links(struct taking *taking, uint64_t chunk) {
    uint64_t links[2];
    return !memory_read(&taking->view->reader, chunk + HEADER, links, sizeof links) ||
           keep_run(taking->heads, chunk + HEADER, links, sizeof links);
}

static bool keep_bins(void *context, const struct arena *arena) {
    struct taking *taking = context;
    for (unsigned bin = 0; bin < ARENA_BINS; bin++) {
        const uint64_t *words = &arena->bins[2 * (size_t)bin];
        if (words[0] == arena_bin_head(arena, bin)) continue;
        if (!keep_links(taking, words[0])) return false;
        if (words[1] != words[0] && !keep_links(taking, words[1])) return false;
    }
    return true;
}

// Tells that a block can be a thread's cache in use: bins have a link if they have a count.
static bool can_be_cache(const uint8_t *block, const struct chunk_cache_form *form) {
    unsigned wrong = 0, filled = 0;
    for (unsigned i = 0; i < CHUNK_CACHE_BINS && wrong <= CACHE_WRONG_MOST; i++) {
        uint64_t link;
        uint16_t count = block[i];
        if (form->count_bytes == sizeof count) memcpy(&count, block + 2 * i, sizeof count);
        memcpy(&link, block + CHUNK_CACHE_BINS * form->count_bytes + i * WORD, sizeof link);
        bool is_wrong = !count != !link || link % HEADER;
        wrong += is_wrong;
        filled += link && !is_wrong;
    }
    return wrong <= CACHE_WRONG_MOST && filled;
}

static bool keep_cache(struct taking *taking, uint64_t block, uint64_t usable) {
    for (unsigned i = 0; i < CHUNK_CACHE_FORMS; i++) {
        const struct chunk_cache_form *form = &chunk_cache_forms[i];
        const size_t size = CHUNK_CACHE_BINS * (form->count_bytes + (size_t)WORD);
        if (!chunk_may_be_cache(usable, form)) continue;
        if (!memory_window_move(&taking->window, block, size)) continue;
        if (can_be_cache(taking->window.bytes, form))
            return keep_run(taking->heads, block, taking->window.bytes, size);
    }
    return true;
}

// --- heads

// Keeps the head of the chunk at `at`; false if its size is not there, or no room.
static bool keep_head(struct taking *taking, uint64_t at) {
    struct heap_heads *heads = taking->heads;
    struct heap_head head;
    if (heads->count == heads->capacity ||
        !memory_window_word(&taking->window, at + WORD, &head.size))
        return false;
    if (!memory_window_word(&taking->window, at + HEADER, &head.first)) head.first = 0;
    heads->items[heads->count++] = head;
    return true;
}

static uint64_t take_chunks(struct taking *taking, uint64_t at, uint64_t end) {
    const struct heap_heads *heads = taking->heads;
    while (at < end && keep_head(taking, at)) {
        const uint64_t size = chunk_walk_bytes(heads->items[heads->count - 1].size, at, end);
        if (!size || size == CHUNK_BROKEN) return at + HEAD_END;
        if (!keep_cache(taking, at + HEADER, size - WORD)) taking->is_bad = true;
        at += size;
    }
    return at;
}

static bool take_range(struct taking *taking, const struct glibc_range *range) {
    struct heap_heads *heads = taking->heads;
    const size_t count = heads->stretches.count;
    const uint64_t before = count ? heads->stretches.items[count - 1].range_end : 0;
    if (range->first >= range->top || range->start < before) return true;
    struct head_stretch *stretch = array_push(&heads->stretches);
    if (!stretch) return false;
    *stretch = (struct head_stretch){
        .start = range->first, .top = range->top, .range_end = range->end, .first = heads->count};
    const uint64_t end = take_chunks(taking, range->first, range->top);
    stretch->end = end < range->top ? end : range->top;
    stretch->count = heads->count - stretch->first;
    return !taking->is_bad;
}

bool heap_heads_take(struct heap_heads *heads, const struct memory_view *view) {
    struct taking taking = {.heads = heads, .view = view};
    struct glibc_heap heap = {0};
    heads->count = heads->stretches.count = heads->runs.count = heads->bytes.count = 0;
    bool is_ok = memory_window_open(&taking.window, &view->reader) &&
                 glibc_heap_ranges(view, &heads->arenas, &heap, keep_bins, &taking);
    for (size_t i = 0; is_ok && i < heap.ranges.count; i++)
        is_ok = take_range(&taking, &heap.ranges.items[i]);
    glibc_heap_free(&heap);
    memory_window_close(&taking.window);
    return is_ok;
}

// --- reading them

static int compare_runs(const void *a, const void *b) {
    const struct head_run *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static uint64_t chunk_end(const struct heap_heads *heads, size_t number, uint64_t at) {
    return at + (heads->items[number].size & ~(uint64_t)CHUNK_FLAGS);
}

bool heap_heads_settle(struct heap_heads *heads) {
    if (heads->runs.count)
        qsort(heads->runs.items, heads->runs.count, sizeof *heads->runs.items, compare_runs);
    for (size_t i = 0; i < heads->stretches.count; i++) {
        const struct head_stretch *stretch = &heads->stretches.items[i];
        uint64_t at = stretch->start;
        for (size_t k = stretch->first; k < stretch->first + stretch->count; k++) {
            uint64_t *slot = k % INDEX_STEP ? &at : array_push(&heads->index);
            if (!slot) return false;
            *slot = at;
            at = chunk_end(heads, k, at);
        }
    }
    return true;
}

// Moves to the chunk of the stretch that the address lies in.
static void find_near(struct heap_heads *heads, const struct head_stretch *stretch,
                      uint64_t address) {
    const size_t end = stretch->first + stretch->count;
    bool is_near = heads->near >= stretch->first && heads->near < end &&
                   heads->near_address <= address && address - heads->near_address < near_bytes;
    if (!is_near) {
        const size_t from = (stretch->first + INDEX_STEP - 1) / INDEX_STEP;
        const size_t until = (end + INDEX_STEP - 1) / INDEX_STEP;
        const uint64_t *index = heads->index.items + from;
        size_t low;
        search_first(low, until > from ? until - from : 0, index[low] > address);
        heads->near = low ? (from + low - 1) * INDEX_STEP : stretch->first;
        heads->near_address = low ? index[low - 1] : stretch->start;
    }
    while (heads->near + 1 < end) {
        const uint64_t next = chunk_end(heads, heads->near, heads->near_address);
        if (next > address) break;
        heads->near++;
        heads->near_address = next;
    }
}

// Copies the part of some known bytes that lies in what is asked for.
static void put(uint8_t *out, uint64_t address, size_t size, uint64_t at, const void *bytes,
                size_t count) {
    const uint64_t start = at > address ? at : address;
    const uint64_t end = at + count < address + size ? at + count : address + size;
    if (start < end)
        memcpy(out + (start - address), (const uint8_t *)bytes + (start - at), end - start);
}

static void put_heads(struct heap_heads *heads, const struct head_stretch *stretch,
                      uint64_t address, uint8_t *out, size_t size) {
    find_near(heads, stretch, address);
    uint64_t at = heads->near_address;
    for (size_t i = heads->near; i < stretch->first + stretch->count && at < address + size; i++) {
        put(out, address, size, at + WORD, &heads->items[i], sizeof heads->items[i]);
        at = chunk_end(heads, i, at);
    }
}

static void put_runs(const struct heap_heads *heads, uint64_t address, uint8_t *out, size_t size) {
    const struct head_run *runs = heads->runs.items;
    size_t low;
    search_first(low, heads->runs.count, runs[low].address + runs[low].bytes > address);
    for (; low < heads->runs.count && runs[low].address < address + size; low++)
        put(out, address, size, runs[low].address, heads->bytes.items + runs[low].at,
            runs[low].bytes);
}

size_t heap_heads_read(struct heap_heads *heads, uint64_t address, void *out, size_t size,
                       uint64_t *next) {
    size_t low;
    search_first(low, heads->stretches.count, heads->stretches.items[low].end > address);
    const struct head_stretch *stretch =
        low < heads->stretches.count ? &heads->stretches.items[low] : NULL;
    *next = stretch ? stretch->start : UINT64_MAX;
    if (!stretch || stretch->start > address || !stretch->count) return 0;
    if (size > stretch->end - address) size = stretch->end - address;
    memset(out, 0, size);
    put_heads(heads, stretch, address, out, size);
    put_runs(heads, address, out, size);
    return size;
}

void heap_heads_free(struct heap_heads *heads) {
    arenas_free(&heads->arenas);
    array_free(&heads->stretches);
    array_free(&heads->runs);
    array_free(&heads->bytes);
    array_free(&heads->index);
    *heads = (struct heap_heads){0};
}
