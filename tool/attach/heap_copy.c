// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/heap_copy.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/glibc/arenas.h"
#include "tool/glibc/chunks.h"
#include "tool/proc/pagemap.h"
#include "tool/proc/remote.h"

enum { PAGES_AT_A_TIME = 4096 };
enum { WITH_MEMORY = PAGE_RESIDENT | PAGE_SWAPPED };

// Which pages of the process have memory.
struct pages {
    struct pagemap pagemap;  // closed: all pages count as such
    uint8_t flags[PAGES_AT_A_TIME];
    uint64_t first;  // page number of flags[0]
    uint64_t count;
};

static bool is_there(struct pages *pages, uint64_t page, uint64_t end_page) {
    if (pages->pagemap.file < 0) return true;
    if (page < pages->first || page >= pages->first + pages->count) {
        uint64_t left = end_page - page;
        size_t wanted = left < PAGES_AT_A_TIME ? (size_t)left : PAGES_AT_A_TIME;
        pages->first = page;
        pages->count =
            pagemap_flags(&pages->pagemap, page * pages->pagemap.page_bytes, wanted, pages->flags);
        if (!pages->count) return true;
    }
    return pages->flags[page - pages->first] & WITH_MEMORY;
}

static bool add_part(struct heap_copy *copy, uint64_t start, uint64_t end, uint64_t extent_end) {
    struct heap_part *slot = array_push(&copy->parts);
    if (slot) *slot = (struct heap_part){start, end, extent_end};
    return slot != NULL;
}

// Heaps of threads' arenas.
static bool add_heaps(struct heap_copy *copy, const struct remote *remote,
                      const struct extent *mapping) {
    uint64_t first = (mapping->start + ARENA_HEAP_BYTES - 1) / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES;
    for (uint64_t at = first; at < mapping->end; at += ARENA_HEAP_BYTES) {
        struct page_heads heads;
        struct arena_heap heap;
        page_heads_read(&heads, remote, WITH_MEMORY, at, at + remote->pagemap.page_bytes);
        if (!heads.count) continue;
        memcpy(&heap, heads.items[0].words, sizeof heap);
        uint64_t end = at + heap.bytes;
        if (arena_heap_is_valid(&heap, at, mapping->end) && !add_part(copy, at, end, end))
            return false;
    }
    return true;
}

// Blocks with mappings of their own: the kernel joins neighbours, whatever they are. False: no
// memory.
static bool add_mapped(struct heap_copy *copy, const struct remote *remote, uint64_t start,
                       uint64_t end) {
    const uint64_t page_bytes = remote->pagemap.page_bytes;
    struct page_heads heads;
    for (uint64_t at = start; at<end; at = at> heads.end ? at : heads.end) {
        page_heads_read(&heads, remote, WITH_MEMORY, at, end);
        for (size_t i = 0; i < heads.count; i++) {
            uint64_t address = heads.items[i].address;
            if (address < at) continue;  // inside the block before
            uint64_t least = address == start ? page_bytes : CHUNK_MAPPED_LEAST;
            uint64_t size =
                chunk_mapped_bytes(heads.items[i].words, page_bytes, least, end - address);
            at = address + (size ? size : page_bytes);
            if (size && !add_part(copy, address, address + page_bytes, at)) return false;
        }
    }
    return true;
}

static bool add_memory(struct heap_copy *copy, const struct remote *remote,
                       const struct extent *mapping) {
    if (!copy->is_all)
        return add_mapped(copy, remote, mapping->start, mapping->end) &&
               add_heaps(copy, remote, mapping);
    return mapping->start >= mapping->end ||
           add_part(copy, mapping->start, mapping->end, mapping->end);
}

// Without what cairn has mapped itself.
static bool add_anonymous(struct heap_copy *copy, const struct remote *remote,
                          const struct extent *mapping) {
    struct extent before = *mapping, behind = *mapping;
    bool has_own = copy->own_start < mapping->end && copy->own_end > mapping->start;
    if (has_own) {
        before.end = copy->own_start > mapping->start ? copy->own_start : mapping->start;
        behind.start = copy->own_end < mapping->end ? copy->own_end : mapping->end;
        if (!add_memory(copy, remote, &behind)) return false;
    }
    return add_memory(copy, remote, &before);
}

static bool add_parts(struct heap_copy *copy, const struct remote *remote,
                      const struct extent *mapping) {
    bool is_libc = mapping->start >= copy->libc_start && mapping->end <= copy->libc_end;
    if (mapping->kind == EXTENT_BREAK ||
        (mapping->kind == EXTENT_DATA && (is_libc || copy->is_all)))
        return add_part(copy, mapping->start, mapping->end, mapping->end);
    return mapping->kind != EXTENT_MEMORY || add_anonymous(copy, remote, mapping);
}

static int compare_parts(const void *a, const void *b) {
    const struct heap_part *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Each part is a segment of the image.
static bool plan(struct heap_copy *copy, const struct remote *remote, struct error *error) {
    uint64_t offset = 0;
    copy->parts.count = copy->image.segments.count = 0;
    if (!extents_of_process(remote->pid, &copy->extents, error)) return false;
    for (size_t i = 0; i < copy->extents.items.count; i++)
        if (!add_parts(copy, remote, &copy->extents.items.items[i]))
            return error_set(error, "out of memory");
    if (copy->parts.count)
        qsort(copy->parts.items, copy->parts.count, sizeof *copy->parts.items, compare_parts);
    for (size_t i = 0; i < copy->parts.count; i++) {
        const struct heap_part *part = &copy->parts.items[i];
        struct memory_segment *segment = array_push(&copy->image.segments);
        if (!segment) return error_set(error, "out of memory");
        uint64_t bytes = part->extent_end - part->start;
        *segment = (struct memory_segment){.start = part->start,
                                           .end = part->extent_end,
                                           .offset = offset,
                                           .bytes = bytes,
                                           .is_writable = true};
        offset += bytes;
    }
    copy->image.page_bytes = remote->pagemap.page_bytes;
    copy->image.source = (struct source){.descriptor = -1, .size = offset};
    return true;
}

// A run of pages that are there, next from `*at` on; false: none before `end`.
static bool next_run(struct pages *pages, uint64_t *at, uint64_t end, struct heap_part *run) {
    const uint64_t page_bytes = pages->pagemap.page_bytes;
    uint64_t page = *at / page_bytes, end_page = end / page_bytes;
    while (page < end_page && !is_there(pages, page, end_page)) page++;
    run->start = page * page_bytes;
    while (page < end_page && is_there(pages, page, end_page)) page++;
    run->end = *at = page * page_bytes;
    return run->start < run->end;
}

bool heap_copy_measure(struct heap_copy *copy, const struct remote *remote, uint64_t *bytes,
                       struct error *error) {
    struct remote paged = *remote;
    paged.pagemap = pagemap_open(remote->pid);
    struct pages pages = {.pagemap = paged.pagemap};
    struct heap_part run = {0};
    *bytes = 0;
    bool is_ok = plan(copy, &paged, error);
    for (size_t i = 0; is_ok && i < copy->parts.count; i++) {
        uint64_t at = copy->parts.items[i].start;
        while (next_run(&pages, &at, copy->parts.items[i].end, &run)) *bytes += run.end - run.start;
    }
    pagemap_close(&pages.pagemap);
    return is_ok;
}

static uint8_t *place_of(const struct heap_copy *copy, uint64_t address) {
    const struct memory_segment *segment = core_segment_of(&copy->image, address);
    return copy->room + segment->offset + (address - segment->start);
}

static bool make_room(struct heap_copy *copy, struct error *error) {
    const size_t spare_factor = 2;  // what may be mapped until the process is stopped
    size_t wanted = copy->image.source.size;
    if (wanted > copy->room_bytes) {
        if (copy->room) munmap(copy->room, copy->room_bytes);
        copy->room_bytes = 0;
        copy->room = source_room(wanted * spare_factor, error);
        if (!copy->room) return false;
        copy->room_bytes = wanted * spare_factor;
    }
    copy->image.source.bytes = copy->room;
    return true;
}

bool heap_copy_take(struct heap_copy *copy, const struct remote *remote, struct error *error) {
    struct remote paged = *remote;
    paged.pagemap = pagemap_open(remote->pid);
    struct pages pages = {.pagemap = paged.pagemap};
    struct heap_part run = {0};
    copy->runs.items.count = 0;
    bool is_ok = plan(copy, &paged, error) && make_room(copy, error), has_room = is_ok;
    for (size_t i = 0; is_ok && i < copy->parts.count; i++) {
        uint64_t at = copy->parts.items[i].start;
        while (is_ok && next_run(&pages, &at, copy->parts.items[i].end, &run))
            is_ok = remote_add_run(&copy->runs, run.start, place_of(copy, run.start),
                                   run.end - run.start);
    }
    if (has_room && !is_ok) error_set(error, "out of memory");
    if (is_ok) remote_copy(remote, copy->runs.items.items, copy->runs.items.count);
    pagemap_close(&pages.pagemap);
    return is_ok;
}

void heap_copy_clear(struct heap_copy *copy) {
    for (size_t i = 0; copy->room && i < copy->runs.items.count; i++)
        memset(copy->runs.items.items[i].to, 0, copy->runs.items.items[i].size);
}

void heap_copy_free(struct heap_copy *copy) {
    if (copy->room) munmap(copy->room, copy->room_bytes);
    array_free(&copy->image.segments);
    array_free(&copy->parts);
    array_free(&copy->extents.items);
    array_free(&copy->runs.items);
    *copy = (struct heap_copy){0};
}
