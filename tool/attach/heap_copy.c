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
// Of such a block that does not begin where a mapping does; the usual threshold.
static const uint64_t mapped_bytes_min = 128 << 10;

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

static bool add_part(struct heap_copy *copy, uint64_t start, uint64_t end, uint64_t extent_end) {
    struct heap_part *slot = array_push(&copy->parts);
    if (slot) *slot = (struct heap_part){start, end, extent_end};
    return slot != NULL;
}

// Heaps of threads begin with the address of their arena, which lies behind the head of the first
// of its heaps, the heap before, and their size.
static bool add_heaps(struct heap_copy *copy, const struct remote *remote,
                      const struct pages *pages, const struct extent *mapping) {
    uint64_t first = (mapping->start + heap_bytes - 1) / heap_bytes * heap_bytes;
    for (uint64_t at = first; at < mapping->end; at += heap_bytes) {
        uint64_t head[3];
        if (!is_page_there(pages, at) || !remote_read(remote, at, head, sizeof head)) continue;
        uint64_t arena_from = head[0] % heap_bytes, size = head[2];
        bool is_heap = arena_from && arena_from < PAGE_BYTES && size && size % PAGE_BYTES == 0 &&
                       size <= heap_bytes && size <= mapping->end - at;
        if (is_heap && !add_part(copy, at, at + size, at + size)) return false;
    }
    return true;
}

// The first words of some pages.
struct heads {
    uint64_t addresses[RUNS_MAX], words[RUNS_MAX][2];
    size_t count;
};

// Those of the next pages with memory from `at` on.
static void read_heads(struct heads *heads, const struct remote *remote, struct pages *pages,
                       uint64_t at, uint64_t end) {
    struct iovec here[RUNS_MAX], there[RUNS_MAX];
    const size_t head_bytes = sizeof heads->words[0];
    heads->count = 0;
    for (; at < end && heads->count < RUNS_MAX; at += PAGE_BYTES) {
        if (!is_there(pages, at / PAGE_BYTES, end / PAGE_BYTES)) continue;
        here[heads->count] = (struct iovec){heads->words[heads->count], head_bytes};
        there[heads->count] = (struct iovec){(void *)(uintptr_t)at, head_bytes};
        heads->addresses[heads->count++] = at;
    }
    ssize_t got = heads->count
                      ? process_vm_readv(remote->pid, here, heads->count, there, heads->count, 0)
                      : 0;
    if (got != (ssize_t)(heads->count * head_bytes))
        for (size_t i = 0; i < heads->count; i++)
            if (!remote_read(remote, heads->addresses[i], heads->words[i], head_bytes))
                heads->words[i][1] = 0;
}

// Blocks with mappings of their own: the kernel joins neighbours, whatever they are. False: no
// memory.
static bool add_mapped(struct heap_copy *copy, const struct remote *remote, struct pages *pages,
                       uint64_t start, uint64_t end) {
    struct heads heads;
    uint64_t at = start;
    do {
        read_heads(&heads, remote, pages, at, end);
        for (size_t i = 0; i < heads.count; i++) {
            uint64_t address = heads.addresses[i], size = heads.words[i][1] & ~size_flags;
            uint64_t least = address == start ? PAGE_BYTES : mapped_bytes_min;
            bool is_block = !heads.words[i][0] && (heads.words[i][1] & size_flags) == mapped_flag &&
                            size >= least && size % PAGE_BYTES == 0 && size <= end - address;
            if (address < at) continue;  // inside the block before
            at = address + (is_block ? size : PAGE_BYTES);
            if (is_block && !add_part(copy, address, address + PAGE_BYTES, at)) return false;
        }
    } while (heads.count == RUNS_MAX && at < end);
    return true;
}

// Without what cairn has mapped itself.
static bool add_anonymous(struct heap_copy *copy, const struct remote *remote, struct pages *pages,
                          const struct extent *mapping) {
    struct extent before = *mapping, behind = *mapping;
    bool has_own = copy->own_start < mapping->end && copy->own_end > mapping->start;
    if (has_own) {
        before.end = copy->own_start > mapping->start ? copy->own_start : mapping->start;
        behind.start = copy->own_end < mapping->end ? copy->own_end : mapping->end;
        if (!add_mapped(copy, remote, pages, behind.start, behind.end) ||
            !add_heaps(copy, remote, pages, &behind))
            return false;
    }
    return add_mapped(copy, remote, pages, before.start, before.end) &&
           add_heaps(copy, remote, pages, &before);
}

static bool add_parts(struct heap_copy *copy, const struct remote *remote, struct pages *pages,
                      const struct extent *mapping) {
    bool is_libc = mapping->start >= copy->libc_start && mapping->end <= copy->libc_end;
    if (mapping->kind == EXTENT_BREAK || (mapping->kind == EXTENT_DATA && is_libc))
        return add_part(copy, mapping->start, mapping->end, mapping->end);
    return mapping->kind != EXTENT_MEMORY || add_anonymous(copy, remote, pages, mapping);
}

static int compare_parts(const void *a, const void *b) {
    const struct heap_part *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Each part is a segment of the image.
static bool plan(struct heap_copy *copy, const struct remote *remote, struct pages *pages,
                 struct error *error) {
    uint64_t offset = 0;
    copy->parts.count = copy->image.segments.count = 0;
    if (!extents_look(remote->pid, &copy->extents, error)) return false;
    for (size_t i = 0; i < copy->extents.items.count; i++)
        if (!add_parts(copy, remote, pages, &copy->extents.items.items[i]))
            return error_set(error, "out of memory");
    if (copy->parts.count)
        qsort(copy->parts.items, copy->parts.count, sizeof *copy->parts.items, compare_parts);
    for (size_t i = 0; i < copy->parts.count; i++) {
        const struct heap_part *part = &copy->parts.items[i];
        struct core_segment *segment = array_push(&copy->image.segments);
        if (!segment) return error_set(error, "out of memory");
        uint64_t bytes = part->extent_end - part->start;
        *segment = (struct core_segment){.start = part->start,
                                         .end = part->extent_end,
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
    struct heap_part run = {0};
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
    struct heap_part run = {0};
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
    array_free(&copy->extents.items);
    *copy = (struct heap_copy){0};
}
