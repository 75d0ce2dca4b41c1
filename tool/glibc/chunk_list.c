// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/glibc/chunks.h"

const struct chunk_cache_form chunk_cache_forms[CHUNK_CACHE_FORMS] = {{0x288, 2}, {0x248, 1}};

bool chunk_is_free(const struct glibc_chunk *chunk) {
    return chunk->kind >= CHUNK_BINNED;
}

bool chunk_is_used(const struct glibc_chunk *chunk) {
    return chunk->kind < CHUNK_MOVING;
}

static int compare_chunks(const void *a, const void *b) {
    const struct glibc_chunk *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static bool join_chunks(struct glibc_heap *heap, const struct glibc_heap *other) {
    const size_t before = heap->chunks.count;
    for (size_t i = 0; i < other->chunks.count; i++) {
        struct glibc_chunk *slot = array_push(&heap->chunks);
        if (slot) *slot = other->chunks.items[i];
        if (!slot) heap->chunks.count = before;
        if (!slot) return false;
    }
    qsort(heap->chunks.items, heap->chunks.count, sizeof *heap->chunks.items, compare_chunks);
    return true;
}

bool glibc_heap_join(struct glibc_heap *heap, struct glibc_heap *other) {
    if (heap->chunks.count) {
        if (!join_chunks(heap, other)) return false;
    } else {  // taken over: there may be as many chunks as memory has room for
        array_free(&heap->chunks);
        memcpy(&heap->chunks, &other->chunks, sizeof heap->chunks);
        memset(&other->chunks, 0, sizeof other->chunks);
    }
    heap->broken_count += other->broken_count;
    heap->other = other->other;
    other->other = (struct other_heap){.name = NULL};
    return true;
}

const struct glibc_chunk *glibc_chunk_of(const struct glibc_heap *heap, uint64_t address) {
    size_t low;
    search_first(low, heap->chunks.count, heap->chunks.items[low].address > address);
    const struct glibc_chunk *chunk = low ? &heap->chunks.items[low - 1] : NULL;
    bool is_inside = chunk && (address == chunk->address || address - chunk->address < chunk->size);
    return is_inside ? chunk : NULL;
}
