// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_overview_parts.h"

#include <string.h>

static void add_part(struct overview *overview, enum part_kind kind, uint64_t bytes,
                     const char *text) {
    if (!bytes) return;
    overview->parts[overview->part_count++] = (struct part){kind, bytes, text};
    overview->all_bytes += bytes;
}

// Returns how much of another allocator's memory is resident, and of that what blocks in use take.
static uint64_t other_resident(const struct overview *overview, uint64_t *used) {
    const struct stopped_image *live = &overview->subject.look.live;
    const struct glibc_heap *heap = core_heap_of(&overview->subject);
    uint64_t resident = 0;
    for (size_t i = 0; i < heap->other.memory.items.count; i++) {
        const struct span *span = &heap->other.memory.items.items[i];
        resident += stopped_resident_bytes(live, span->start, span->end);
    }
    *used = 0;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (!chunk_is_free(chunk))
            *used += stopped_resident_bytes(live, chunk->address, chunk->address + chunk->size);
    }
    return resident;
}

// The same parts of a process that has another allocator's heap.
static void find_other_parts(struct overview *overview) {
    const uint64_t anonymous = overview->resident.picture.heap_bytes;
    uint64_t used, in_heap = other_resident(overview, &used);
    if (in_heap > anonymous) in_heap = anonymous;
    if (used > in_heap) used = in_heap;
    bool is_jemalloc = !strcmp(overview_allocator(overview), "jemalloc");
    add_part(overview, PART_USED, used, is_jemalloc ? "in use in jemalloc" : "in use in mimalloc");
    add_part(overview, PART_FREE, in_heap - used,
             is_jemalloc ? "free in jemalloc or its tables, still resident"
                         : "free in mimalloc or its tables, still resident");
    add_part(overview, PART_OTHER, anonymous - in_heap, "other anonymous memory");
}

// Takes the heap's part of anonymous memory, as far as the heap could be read.
static void find_heap_parts(struct overview *overview) {
    const uint64_t anonymous = overview->resident.picture.heap_bytes;
    const struct heap_state *heap = &overview->heap;
    uint64_t in_heap = overview->has_heap ? heap->residency.resident_bytes : 0;
    const struct giveback_sum walked = giveback_sum(&overview->facts.giveback);
    bool is_cut = !overview->has_heap && walked.is_cut;
    uint64_t free = walked.free_resident_bytes;
    if (overview->has_heap)
        free = heap->free_resident_bytes;
    else
        in_heap = free < anonymous ? free : anonymous;
    if (free > in_heap) free = in_heap;
    add_part(overview, PART_USED, in_heap - free, "in use in glibc's malloc");
    add_part(overview, PART_FREE, free,
             is_cut ? "free in glibc's malloc, still resident, at least"
                    : "free in glibc's malloc, still resident");
    add_part(overview, PART_OTHER, anonymous > in_heap ? anonymous - in_heap : 0,
             overview->has_heap ? "mapped by the program or another allocator"
             : free && !is_cut  ? "heap in use and other anonymous memory"
                                : "heap and other anonymous memory");
}

void overview_find_parts(struct overview *overview) {
    const struct cairn_picture *picture = &overview->resident.picture;
    if (overview->has_other)
        find_other_parts(overview);
    else
        find_heap_parts(overview);
    add_part(overview, PART_REST, picture->files_bytes, "code, data and files");
    add_part(overview, PART_REST, picture->shared_bytes, "shared memory without a file");
    add_part(overview, PART_REST, picture->stacks_bytes, "stacks of threads");
    add_part(overview, PART_REST, picture->other_bytes, "of the kernel and devices");
}

uint64_t overview_bytes_of(const struct overview *overview, enum part_kind kind) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < overview->part_count; i++)
        if (overview->parts[i].kind == kind) bytes += overview->parts[i].bytes;
    return bytes;
}

uint64_t overview_used_blocks(const struct overview *overview) {
    const struct heap_state *state = &overview->heap;
    uint64_t count = 0;
    if (!overview->has_other)
        return state->kinds[HEAP_USED].count + state->kinds[HEAP_MAPPED].count;
    const struct glibc_heap *heap = core_heap_of(&overview->subject);
    for (size_t i = 0; i < heap->chunks.count; i++) count += !chunk_is_free(&heap->chunks.items[i]);
    return count;
}

const char *overview_allocator(const struct overview *overview) {
    return overview->has_other ? core_heap_of(&overview->subject)->other.name : "glibc's malloc";
}
