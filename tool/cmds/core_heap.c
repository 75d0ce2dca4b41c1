// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_heap.h"

#include <inttypes.h>
#include <stdio.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum { SIZE_CLASSES = 64, KINDS = CHUNK_CACHED + 1, PAGE_BYTES = 4096, PATH_TEXT_BYTES = 1024 };

struct sum {
    uint64_t count, bytes;
};

static void add(struct sum *sum, const struct core_chunk *chunk) {
    sum->count++;
    sum->bytes += chunk->size;
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

static void print_kinds(const struct core_heap *heap) {
    static const char *const names[KINDS] = {
        [CHUNK_USED] = "in use",
        [CHUNK_MAPPED] = "in use, with mappings of their own",
        [CHUNK_BINNED] = "free, in bins",
        [CHUNK_FAST] = "free, in fastbins",
        [CHUNK_CACHED] = "free, in caches of threads",
    };
    struct sum sums[KINDS] = {0};
    for (size_t i = 0; i < heap->chunks.count; i++)
        add(&sums[heap->chunks.items[i].kind], &heap->chunks.items[i]);
    for (unsigned i = 0; i < KINDS; i++) {
        print_sum(&sums[i]);
        printf("  %s\n", names[i]);
    }
    printf(" %12s %10s  free, at the end of %" PRIu64 " %s\n", "",
           units_size((int64_t)heap->top_bytes).text, heap->arena_count,
           units_noun((int64_t)heap->arena_count, "arena", "arenas"));
}

// Of free memory between blocks in use only whole pages can go back to the system.
static void print_fragmentation(const struct core_heap *heap) {
    uint64_t free_bytes = 0, page_bytes = 0, used_bytes = 0, largest = 0;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct core_chunk *chunk = &heap->chunks.items[i];
        if (chunk->kind == CHUNK_USED) used_bytes += chunk->size;
        if (!chunk_is_free(chunk)) continue;
        uint64_t first = (chunk->address + PAGE_BYTES - 1) / PAGE_BYTES;
        uint64_t last = (chunk->address + chunk->size) / PAGE_BYTES;
        free_bytes += chunk->size;
        if (last > first) page_bytes += (last - first) * PAGE_BYTES;
        if (chunk->size > largest) largest = chunk->size;
    }
    printf("\nFragmentation: %s of the arenas are free between blocks in use (%s), the largest "
           "piece has %s;\n%s of it are whole pages, which malloc_trim gives back\n",
           units_percent((int64_t)free_bytes, (int64_t)(free_bytes + used_bytes)).text,
           units_size((int64_t)free_bytes).text, units_size((int64_t)largest).text,
           units_size((int64_t)page_bytes).text);
}

static void print_doubts(const struct core_subject *subject, const struct core_heap *heap) {
    const char *other = core_other_allocator(subject);
    if (heap->broken_count)
        printf("%" PRIu64 " stretches of the heap were left where a chunk makes no sense\n",
               heap->broken_count);
    if (subject->core->missing_bytes)
        printf("the core is not whole: %s of it are missing\n",
               units_size((int64_t)subject->core->missing_bytes).text);
    if (other) printf("%s is mapped: blocks of that allocator are not among these\n", other);
}

bool core_print_heap(struct core_subject *subject, struct error *error) {
    char path[PATH_TEXT_BYTES];
    if (!core_need_heap(subject, error)) return false;
    const struct core_heap *heap = core_heap_of(subject);
    print_classes(heap);
    putchar('\n');
    print_kinds(heap);
    print_fragmentation(heap);
    print_doubts(subject, heap);
    text_escape(path, sizeof path, subject->look.name);
    printf("\nNext: cairn core %s summarize used | summarize leaked | explain ADDRESS\n", path);
    return true;
}
