// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_heap.h"

#include <inttypes.h>
#include <stdio.h>

#include "tool/base/units.h"

enum { SIZE_CLASSES = 64, KINDS = CHUNK_CACHED + 1 };

struct sum {
    uint64_t count, bytes;
};

static void add(struct sum *sum, const struct core_chunk *chunk) {
    sum->count++;
    sum->bytes += chunk->size;
}

void core_print_chunk_count(const struct core_heap *heap, bool are_free) {
    struct sum sum = {0};
    for (size_t i = 0; i < heap->chunks.count; i++)
        if (chunk_is_free(&heap->chunks.items[i]) == are_free) add(&sum, &heap->chunks.items[i]);
    printf("%" PRIu64 " %s 0x%" PRIx64 " (%s) bytes.\n", sum.count,
           are_free ? "free blocks have" : "allocations use", sum.bytes,
           units_count((int64_t)sum.bytes).text);
}

void core_print_chunks(const struct core_heap *heap, bool are_free) {
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct core_chunk *chunk = &heap->chunks.items[i];
        if (chunk_is_free(chunk) == are_free)
            printf("%s allocation at %" PRIx64 " of size %" PRIx64 "\n\n",
                   are_free ? "Free" : "Used", chunk->address, chunk->size);
    }
    core_print_chunk_count(heap, are_free);
}

static void print_sum(const struct sum *sum) {
    printf(" %12s %10s", units_count((int64_t)sum->count).text,
           units_size((int64_t)sum->bytes).text);
}

static void print_classes(const struct core_heap *heap) {
    struct sum used[SIZE_CLASSES] = {0}, free[SIZE_CLASSES] = {0};
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct core_chunk *chunk = &heap->chunks.items[i];
        unsigned class =
            chunk->size ? SIZE_CLASSES - 1 - (unsigned)__builtin_clzll(chunk->size) : 0;
        add(chunk_is_free(chunk) ? &free[class] : &used[class], chunk);
    }
    printf("%12s %12s %10s %12s %10s\n", "size from", "used", "bytes", "free", "bytes");
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        if (!used[i].count && !free[i].count) continue;
        printf("%12s", units_size((int64_t)1 << i).text);
        print_sum(&used[i]);
        print_sum(&free[i]);
        putchar('\n');
    }
}

void core_print_heap(const struct core_heap *heap) {
    static const char *const names[KINDS] = {
        [CHUNK_USED] = "in use",
        [CHUNK_MAPPED] = "in use, with mappings of their own",
        [CHUNK_BINNED] = "free, in bins",
        [CHUNK_FAST] = "free, in fastbins",
        [CHUNK_CACHED] = "free, in caches of threads",
    };
    struct sum sums[KINDS] = {0};
    print_classes(heap);
    for (size_t i = 0; i < heap->chunks.count; i++)
        add(&sums[heap->chunks.items[i].kind], &heap->chunks.items[i]);
    putchar('\n');
    for (unsigned i = 0; i < KINDS; i++) {
        print_sum(&sums[i]);
        printf("  %s\n", names[i]);
    }
    printf(" %12s %10s  free, at the end of %" PRIu64 " arena%s\n", "",
           units_size((int64_t)heap->top_bytes).text, heap->arena_count,
           heap->arena_count == 1 ? "" : "s");
    if (heap->broken_count)
        printf("%" PRIu64 " stretches of the heap were left where a chunk makes no sense\n",
               heap->broken_count);
}
