// SPDX-License-Identifier: Apache-2.0
#include "tool/jemalloc/heap.h"

#include <stdlib.h>
#include <string.h>

#include "tool/jemalloc/caches.h"

enum { WORD_BITS = 64 };

struct adding {
    const struct jemalloc_extents *extents;
    const struct jemalloc_caches *caches;
    struct glibc_heap found;
    size_t cached;  // the first block of the caches that was not passed
};

// Blocks are asked for in ascending order.
static bool is_cached(struct adding *adding, uint64_t address) {
    const uint64_t *blocks = adding->caches->blocks.items;
    while (adding->cached < adding->caches->blocks.count && blocks[adding->cached] < address)
        adding->cached++;
    return adding->cached < adding->caches->blocks.count && blocks[adding->cached] == address;
}

// The table of a thread's cache is a block that the program did not ask for.
static bool is_own(const struct adding *adding, uint64_t address, uint64_t bytes) {
    uint64_t at = address;
    struct span gap;
    if (!adding->caches->tables.items.count) return false;
    bool has_gap = spans_gap(&adding->caches->tables, &at, address + bytes, &gap);
    return !has_gap || gap.start != address || gap.end != address + bytes;
}

static bool add_block(struct adding *adding, uint64_t address, uint64_t bytes, bool is_free) {
    if (!is_free && is_own(adding, address, bytes)) return true;
    struct glibc_chunk *slot = array_push(&adding->found.chunks);
    if (!slot) return false;
    const enum chunk_kind used = is_cached(adding, address) ? CHUNK_CACHED : CHUNK_USED;
    *slot = (struct glibc_chunk){address, bytes, is_free ? CHUNK_BINNED : used};
    return true;
}

// Adds the blocks of pages, `count`, to the sums of their size: those that were pushed since
// `first`, and jemalloc's own, in use, which were not. Pages without a block in use are emptied.
static bool sum_up(struct adding *adding, const struct jemalloc_extent *extent, uint64_t count,
                   size_t first) {
    const uint64_t start = extent->address & ~UINT64_C(0xfff);
    struct other_heap *other = &adding->found.other;
    struct other_class *class =
        other_heap_class(other, jemalloc_block_bytes(adding->extents, extent));
    uint64_t free = 0, cached = 0;
    if (!class) return false;
    for (size_t i = first; i < adding->found.chunks.count; i++) {
        free += adding->found.chunks.items[i].kind == CHUNK_BINNED;
        cached += adding->found.chunks.items[i].kind == CHUNK_CACHED;
    }
    class->page_bytes += extent->bytes;
    class->free += free;
    class->cached += cached;
    class->used += count - free - cached;
    return count > free + cached || spans_add(&other->emptied, start, start + extent->bytes);
}

static bool add_slab(struct adding *adding, const struct jemalloc_extent *extent) {
    const uint64_t bytes = jemalloc_block_bytes(adding->extents, extent);
    const uint64_t count = extent->bytes / bytes;
    const size_t first = adding->found.chunks.count;
    bool is_ok = true;
    for (uint64_t i = 0; i < count && is_ok; i++) {
        bool is_free = extent->free[i / WORD_BITS] >> i % WORD_BITS & 1;
        is_ok = add_block(adding, extent->address + i * bytes, bytes, is_free);
    }
    return is_ok && sum_up(adding, extent, count, first);
}

static bool add_large(struct adding *adding, const struct jemalloc_extent *extent) {
    const size_t first = adding->found.chunks.count;
    const uint64_t bytes = jemalloc_block_bytes(adding->extents, extent);
    return add_block(adding, extent->address, bytes, false) && sum_up(adding, extent, 1, first);
}

static bool add_free_pages(struct other_heap *other, const struct jemalloc_extent *extent) {
    const uint64_t end = extent->address + extent->bytes;
    return spans_add(&other->free_pages, extent->address, end) &&
           spans_add(&other->asked, extent->address, end);
}

static bool add_extent(struct adding *adding, const struct jemalloc_extent *extent) {
    struct other_heap *other = &adding->found.other;
    const uint64_t start = extent->address & ~UINT64_C(0xfff);
    if (!spans_add(&other->memory, start, start + extent->bytes)) return false;
    switch (extent->state) {
    case JEMALLOC_DIRTY:
        other->dirty_bytes += extent->bytes;
        return add_free_pages(other, extent);
    case JEMALLOC_MUZZY:
        other->muzzy_bytes += extent->bytes;
        return add_free_pages(other, extent);
    case JEMALLOC_RETAINED:
        other->retained_bytes += extent->bytes;
        return true;
    case JEMALLOC_MOVING:
        adding->found.broken_count++;
        return true;
    case JEMALLOC_ACTIVE:
        break;
    }
    other->page_bytes += extent->bytes;
    if (extent->is_slab) return add_slab(adding, extent);
    return add_large(adding, extent);
}

static const struct memory_segment *segment_of(const struct memory_view *view, uint64_t address) {
    return memory_segment_of(view->segments, view->segment_count, address);
}

// `unknown` gets how many threads may have a cache that was not read.
static bool read_caches(const struct jemalloc_source *source, struct jemalloc_caches *caches,
                        uint64_t *unknown) {
    const struct memory_view *view = source->view;
    bool is_out_of_memory = false;
    *unknown = source->thread_count;
    for (size_t i = 0; i < source->thread_count && !is_out_of_memory; i++) {
        const struct memory_segment *segment = segment_of(view, source->thread_pointers[i]);
        if (segment && jemalloc_cache_read(&view->reader, source->thread_pointers[i],
                                           segment->start, caches, &is_out_of_memory))
            --*unknown;
    }
    for (size_t i = 0; i < source->thread_count; i++)
        *unknown -= jemalloc_cache_is_absent(&view->reader, source->thread_pointers[i], caches);
    jemalloc_caches_settle(caches);
    return !is_out_of_memory;
}

static bool add_all(const struct jemalloc_source *source, const struct jemalloc_extents *extents,
                    struct glibc_heap *heap) {
    struct jemalloc_caches caches = {.version = extents->version};
    struct adding adding = {
        .extents = extents, .caches = &caches, .found = {.other = {.name = "jemalloc"}}};
    struct other_heap *other = &adding.found.other;
    bool is_ok = read_caches(source, &caches, &other->unknown_caches);
    for (size_t i = 0; i < extents->items.count && is_ok; i++)
        is_ok = add_extent(&adding, &extents->items.items[i]);
    for (size_t i = 0; i < extents->tables.items.count && is_ok; i++)
        is_ok = spans_add(&other->memory, extents->tables.items.items[i].start,
                          extents->tables.items.items[i].end);
    adding.found.broken_count += extents->torn_count;
    other_heap_settle(other);
    is_ok = is_ok && glibc_heap_join(heap, &adding.found);
    jemalloc_caches_free(&caches);
    glibc_heap_free(&adding.found);
    return is_ok;
}

enum jemalloc_finding jemalloc_heap_add(const struct jemalloc_source *source,
                                        struct glibc_heap *heap) {
    struct jemalloc_extents extents;
    const enum jemalloc_finding finding =
        jemalloc_extents_read(&source->view->reader, source->place, &extents);
    if (finding != JEMALLOC_FOUND) return finding;
    bool is_ok = add_all(source, &extents, heap);
    jemalloc_extents_free(&extents);
    return is_ok ? JEMALLOC_FOUND : JEMALLOC_FAILED;
}
