// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/heap_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, RUNS_MAX = 256, PAGES_AT_A_TIME = 4096 };

// glibc's: the alignment of threads' heaps, and the size word's flags of a block with a mapping.
static const uint64_t heap_bytes = 64ull << 20, size_flags = 7, mapped_flag = 2;

static const uint64_t present_or_swapped = 3ull << 62;  // of a word in pagemap

// Which pages of the process have memory.
struct pages {
    int file;  // /proc/PID/pagemap; -1: all pages count as there
    uint64_t words[PAGES_AT_A_TIME];
    uint64_t first;  // page number of words[0]
    uint64_t count;
};

static bool is_there(struct pages *pages, uint64_t page, uint64_t end_page) {
    if (pages->file < 0) return true;
    if (page < pages->first || page >= pages->first + pages->count) {
        uint64_t left = end_page - page;
        size_t wanted = left < PAGES_AT_A_TIME ? (size_t)left : PAGES_AT_A_TIME;
        ssize_t got = pread(pages->file, pages->words, wanted * sizeof *pages->words,
                            (off_t)(page * sizeof *pages->words));
        pages->first = page;
        pages->count = got > 0 ? (uint64_t)got / sizeof *pages->words : 0;
        if (!pages->count) return true;
    }
    return pages->words[page - pages->first] & present_or_swapped;
}

// The same for one page alone. Looking at one that has no memory would give it some.
static bool is_page_there(const struct pages *pages, uint64_t address) {
    uint64_t word;
    if (pages->file < 0) return true;
    off_t at = (off_t)(address / PAGE_BYTES * sizeof word);
    return pread(pages->file, &word, sizeof word, at) == sizeof word && word & present_or_swapped;
}

static void open_pages(struct pages *pages, const struct remote *remote) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)remote->pid);
    pages->file = open(path, O_RDONLY | O_CLOEXEC);
    pages->first = pages->count = 0;
}

static bool add_part(struct heap_copy *copy, uint64_t start, uint64_t end) {
    struct heap_part *slot = array_push(&copy->parts);
    if (slot) *slot = (struct heap_part){start, end};
    return slot != NULL;
}

// Heaps of threads begin with the address of their arena, which lies behind the head of the first
// of its heaps, the heap before, and their size.
static bool add_heaps(struct heap_copy *copy, const struct remote *remote,
                      const struct pages *pages, const struct map_range *mapping) {
    uint64_t first = (mapping->start + heap_bytes - 1) / heap_bytes * heap_bytes;
    for (uint64_t at = first; at < mapping->end; at += heap_bytes) {
        uint64_t head[3];
        if (!is_page_there(pages, at) || !remote_read(remote, at, head, sizeof head)) continue;
        uint64_t arena_from = head[0] % heap_bytes, size = head[2];
        bool is_heap = arena_from && arena_from < PAGE_BYTES && size && size % PAGE_BYTES == 0 &&
                       size <= heap_bytes && size <= mapping->end - at;
        if (is_heap && !add_part(copy, at, at + size)) return false;
    }
    return true;
}

// Blocks with mappings of their own, one behind the other: the kernel joins neighbours.
static bool add_mapped(struct heap_copy *copy, const struct remote *remote,
                       const struct pages *pages, const struct map_range *mapping) {
    uint64_t head[2], at = mapping->start;
    while (at < mapping->end && is_page_there(pages, at) &&
           remote_read(remote, at, head, sizeof head)) {
        uint64_t size = head[1] & ~size_flags;
        bool is_block = !head[0] && (head[1] & size_flags) == mapped_flag && size >= PAGE_BYTES &&
                        size % PAGE_BYTES == 0 && size <= mapping->end - at;
        if (!is_block) return true;
        if (!add_part(copy, at, at + PAGE_BYTES)) return false;
        at += size;
    }
    return true;
}

static bool add_parts(struct heap_copy *copy, const struct remote *remote,
                      const struct pages *pages, const struct map_range *mapping) {
    bool is_libc = mapping->start >= copy->libc_start && mapping->end <= copy->libc_end;
    if (!mapping->is_readable || !mapping->is_writable || !mapping->is_private) return true;
    if (mapping->kind == MAPS_HEAP || (mapping->kind == MAPS_FILE && is_libc))
        return add_part(copy, mapping->start, mapping->end);
    return mapping->kind != MAPS_ANONYMOUS ||
           (add_mapped(copy, remote, pages, mapping) && add_heaps(copy, remote, pages, mapping));
}

// The mappings that something is copied of become the segments of the image.
static bool plan(struct heap_copy *copy, const struct remote *remote, const struct pages *pages,
                 struct error *error) {
    uint64_t offset = 0;
    copy->parts.count = copy->image.segments.count = 0;
    if (!maps_read(remote->pid, &copy->maps, error)) return false;
    for (size_t i = 0; i < copy->maps.items.count; i++) {
        const struct map_range *mapping = &copy->maps.items.items[i];
        size_t before = copy->parts.count;
        if (!add_parts(copy, remote, pages, mapping)) return error_set(error, "out of memory");
        if (copy->parts.count == before) continue;
        struct core_segment *segment = array_push(&copy->image.segments);
        if (!segment) return error_set(error, "out of memory");
        uint64_t bytes = mapping->end - mapping->start;
        *segment = (struct core_segment){.start = mapping->start,
                                         .end = mapping->end,
                                         .offset = offset,
                                         .bytes = bytes,
                                         .is_writable = true};
        offset += bytes;
    }
    copy->image.source = (struct source){.descriptor = -1, .size = offset};
    return true;
}

// A run of pages that are there, next from `*at` on; false: none before `end`.
static bool next_run(struct pages *pages, uint64_t *at, uint64_t end, struct heap_part *run) {
    uint64_t page = *at / PAGE_BYTES, end_page = end / PAGE_BYTES;
    while (page < end_page && !is_there(pages, page, end_page)) page++;
    run->start = page * PAGE_BYTES;
    while (page < end_page && is_there(pages, page, end_page)) page++;
    run->end = *at = page * PAGE_BYTES;
    return run->start < run->end;
}

bool heap_copy_measure(struct heap_copy *copy, const struct remote *remote, uint64_t *bytes,
                       struct error *error) {
    struct pages pages;
    struct heap_part run;
    *bytes = 0;
    open_pages(&pages, remote);
    bool is_ok = plan(copy, remote, &pages, error);
    for (size_t i = 0; is_ok && i < copy->parts.count; i++) {
        uint64_t at = copy->parts.items[i].start;
        while (next_run(&pages, &at, copy->parts.items[i].end, &run)) *bytes += run.end - run.start;
    }
    if (pages.file >= 0) close(pages.file);
    return is_ok;
}

// Runs that are read by one system call.
struct batch {
    const struct remote *remote;
    struct iovec here[RUNS_MAX], there[RUNS_MAX];
    size_t count, bytes;
};

static void flush(struct batch *batch) {
    ssize_t got = process_vm_readv(batch->remote->pid, batch->here, batch->count, batch->there,
                                   batch->count, 0);
    if (got != (ssize_t)batch->bytes)
        for (size_t i = 0; i < batch->count; i++)
            remote_read(batch->remote, (uint64_t)(uintptr_t)batch->there[i].iov_base,
                        batch->here[i].iov_base, batch->here[i].iov_len);
    batch->count = batch->bytes = 0;
}

static void add_run(struct batch *batch, uint8_t *here, const struct heap_part *run) {
    size_t bytes = run->end - run->start;
    if (batch->count == RUNS_MAX) flush(batch);
    batch->here[batch->count] = (struct iovec){here, bytes};
    batch->there[batch->count++] = (struct iovec){(void *)(uintptr_t)run->start, bytes};
    batch->bytes += bytes;
}

static uint8_t *place_of(const struct heap_copy *copy, uint64_t address) {
    const struct core_segment *segment = core_segment_of(&copy->image, address);
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
    struct pages pages;
    struct batch batch = {.remote = remote};
    struct heap_part run;
    open_pages(&pages, remote);
    bool is_ok = plan(copy, remote, &pages, error) && make_room(copy, error);
    for (size_t i = 0; is_ok && i < copy->parts.count; i++) {
        uint64_t at = copy->parts.items[i].start;
        while (next_run(&pages, &at, copy->parts.items[i].end, &run))
            add_run(&batch, place_of(copy, run.start), &run);
    }
    if (is_ok) flush(&batch);
    if (pages.file >= 0) close(pages.file);
    return is_ok;
}

void heap_copy_clear(struct heap_copy *copy) {
    for (size_t i = 0; copy->room && i < copy->parts.count; i++) {
        const struct heap_part *part = &copy->parts.items[i];
        memset(place_of(copy, part->start), 0, part->end - part->start);
    }
}

void heap_copy_free(struct heap_copy *copy) {
    if (copy->room) munmap(copy->room, copy->room_bytes);
    array_free(&copy->image.segments);
    array_free(&copy->parts);
    maps_free(&copy->maps);
    *copy = (struct heap_copy){0};
}
