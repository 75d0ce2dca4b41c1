// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/stopped_heads.h"

#include <string.h>
#include <sys/mman.h>

#include "tool/base/search.h"
#include "tool/glibc/chunks.h"
#include "tool/model/source.h"

enum { TRIAL_HEADS = 1 << 20, PIECE_LEAST = 4096 };
static const uint64_t buffer_most = 64ull << 20, spare_bytes = 64ull << 20;

static uint64_t page_size(const struct heads_work *work) {
    return work->remote->pagemap.page_bytes;
}

static const struct stopped_segment *segment_of(const struct heads_work *work, uint64_t address) {
    size_t low;
    search_first(low, work->count, work->pages[low].end > address);
    bool is_found = low < work->count && work->pages[low].start <= address;
    return is_found ? &work->pages[low] : NULL;
}

// --- memory of the process, of which pages without content read as zeros

// Copies the part of a segment from `start` to `end`.
static void copy_part(struct heads_work *work, const struct stopped_segment *segment,
                      uint64_t start, uint64_t end, uint8_t *to) {
    const uint64_t page_bytes = page_size(work);
    work->runs.items.count = 0;
    for (uint64_t at = start, next; at < end; at = next) {
        const uint8_t *flags = segment->are_resident + (at - segment->start) / page_bytes;
        bool is_there = *flags & PAGE_OWN;
        next = at / page_bytes * page_bytes;
        do next += page_bytes;
        while (next < end && !(*++flags & PAGE_OWN) == !is_there);
        if (next > end) next = end;
        if (!is_there || !remote_add_run(&work->runs, at, to + (at - start), next - at))
            memset(to + (at - start), 0, next - at);
    }
    work->copied_bytes += remote_copy(work->remote, work->runs.items.items, work->runs.items.count);
}

static bool read_process(const void *context, uint64_t address, void *bytes, size_t size) {
    struct heads_work *work = (struct heads_work *)(uintptr_t)context;
    for (uint64_t at = address, end = address + size, next; at < end; at = next) {
        const struct stopped_segment *segment = segment_of(work, at);
        if (!segment || end < at) return false;
        next = end < segment->end ? end : segment->end;
        copy_part(work, segment, at, next, (uint8_t *)bytes + (at - address));
    }
    return true;
}

// Moves the buffer where what is asked for is not in it, or only its last words are.
static size_t piece_of_process(const void *context, uint64_t address, void *scratch, size_t size,
                               const uint8_t **bytes) {
    struct heads_work *work = (struct heads_work *)(uintptr_t)context;
    const struct stopped_segment *segment = segment_of(work, address);
    (void)scratch;
    if (!segment) return 0;
    uint64_t least = segment->end - address < PIECE_LEAST ? segment->end - address : PIECE_LEAST;
    if (address < work->start || address + least > work->end) {
        work->start = address / page_size(work) * page_size(work);
        work->end = segment->end - work->start < work->buffer_bytes
                        ? segment->end
                        : work->start + work->buffer_bytes;
        copy_part(work, segment, work->start, work->end, work->buffer);
    }
    *bytes = work->buffer + (address - work->start);
    return work->end - address < size ? (size_t)(work->end - address) : size;
}

// Segments that have chunks, or arenas: data that the process wrote.
static bool find_segments(struct heads_work *work) {
    work->segments.count = 0;
    for (size_t i = 0; i < work->count; i++) {
        const enum piece_kind kind = work->pages[i].kind;
        if (kind != PIECE_CHUNKS && kind != PIECE_WHOLE) continue;
        struct memory_segment *slot = array_push(&work->segments);
        if (!slot) return false;
        *slot = work->memory[i];
    }
    return true;
}

static bool take(struct heads_work *work) {
    const struct memory_view view = {{read_process, piece_of_process, NULL, work},
                                     work->segments.items,
                                     work->segments.count,
                                     page_size(work)};
    work->start = work->end = 0;
    return heap_heads_take(&work->out->heads, &view);
}

void stopped_heads_take(struct heads_work *work) {
    struct heap_heads *heads = &work->out->heads;
    work->copied_bytes = 0;
    heads->capacity = work->out->memory_bytes / sizeof *heads->items;
    if (!find_segments(work) || !take(work)) heads->stretches.count = 0;
}

// --- before

static void make_ready(void *memory, uint64_t bytes) {
    madvise(memory, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    madvise(memory, bytes, MADV_POPULATE_WRITE);
#endif
}

// Room for what the heap may become meanwhile; only what is written to takes memory.
static bool make_room(struct heads_work *work, uint64_t bytes) {
    struct stopped_heads *out = work->out;
    struct error unused;
    const uint64_t page_bytes = page_size(work);
    out->memory_bytes = bytes / CHUNK_LEAST_BYTES * sizeof *out->heads.items * 2 + spare_bytes;
    out->memory = source_room(out->memory_bytes, &unused);
    work->buffer_bytes =
        bytes < buffer_most ? bytes / page_bytes * page_bytes + page_bytes : buffer_most;
    work->buffer = out->memory ? source_room(work->buffer_bytes, &unused) : NULL;
    if (work->buffer) make_ready(work->buffer, work->buffer_bytes);
    out->heads.items = (struct heap_head *)(void *)out->memory;
    return work->buffer;
}

// Estimates by the first of them what all heads take.
static uint64_t estimate(const struct heap_heads *heads, uint64_t bytes) {
    uint64_t walked = 0;
    for (size_t i = 0; i < heads->stretches.count; i++)
        walked += heads->stretches.items[i].end - heads->stretches.items[i].start;
    const double per_byte = walked ? (double)heads->count / (double)walked : 0;
    return (uint64_t)(per_byte * (double)bytes) * sizeof *heads->items;
}

bool stopped_heads_rehearse(struct heads_work *work, uint64_t bytes, uint64_t *kept_bytes) {
    struct heap_heads *heads = &work->out->heads;
    if (!make_room(work, bytes) || !find_segments(work)) return false;
    heads->capacity = TRIAL_HEADS;
    if (!take(work)) return false;
    *kept_bytes = estimate(heads, bytes);
    const uint64_t ready_bytes = *kept_bytes + *kept_bytes / 4;
    make_ready(heads->items,
               ready_bytes < work->out->memory_bytes ? ready_bytes : work->out->memory_bytes);
    return true;
}

// --- after

bool stopped_heads_skip(const struct heads_work *work, struct spans *skipped) {
    const struct heap_heads *heads = &work->out->heads;
    const uint64_t page_bytes = page_size(work), mask = ~(page_bytes - 1);
    bool is_ok = true;
    for (size_t i = 0; i < heads->stretches.count && is_ok; i++) {
        const struct head_stretch *stretch = &heads->stretches.items[i];
        const uint64_t start = (stretch->start + page_bytes - 1) & mask, top = stretch->top & mask;
        if (start < top) is_ok = spans_add(skipped, start, top);
        if (top + page_bytes < stretch->range_end)
            is_ok = is_ok && spans_add(skipped, top + page_bytes, stretch->range_end);
    }
    spans_settle(skipped);
    return is_ok;
}

void stopped_heads_free(struct stopped_heads *heads) {
    heap_heads_free(&heads->heads);
    if (heads->memory) munmap(heads->memory, heads->memory_bytes);
    heads->memory = NULL;
}

void stopped_heads_end(struct heads_work *work) {
    if (work->buffer) munmap(work->buffer, work->buffer_bytes);
    work->buffer = NULL;
    array_free(&work->runs.items);
    array_free(&work->segments);
}
