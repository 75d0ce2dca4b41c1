// SPDX-License-Identifier: Apache-2.0
// Any words as the memory of a process on jemalloc, mimalloc or tcmalloc: reading its heap ends,
// with blocks that lie in the process, in order and apart, of which the sums by size are those of
// the blocks.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/sparse_memory.h"
#include "tool/base/search.h"
#include "tool/jemalloc/heap.h"
#include "tool/mimalloc/heap.h"
#include "tool/tcmalloc/heap.h"

enum { SEGMENTS_MOST = 32, THREADS_MOST = 8, WORD = sizeof(uint64_t) };
#define SEGMENT_MOST (UINT64_C(64) << 20)
#define MEMORY_MOST (UINT64_C(256) << 20)

struct memory {
    struct sparse_pair *words;  // ascending
    size_t word_count;
    struct memory_segment segments[SEGMENTS_MOST];
    size_t segment_count;
    uint64_t bytes;
    struct jemalloc_place place;
    uint64_t threads[THREADS_MOST];
    size_t thread_count;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool is_true) {
    if (!is_true) abort();
}

static bool read_memory(const void *context, uint64_t address, void *bytes, size_t size) {
    const struct memory *memory = context;
    const struct memory_segment *segment =
        memory_segment_of(memory->segments, memory->segment_count, address);
    size_t at;
    if (!segment || size > segment->end - address) return false;
    memset(bytes, 0, size);
    search_first(at, memory->word_count, memory->words[at].place + WORD > address);
    for (; at < memory->word_count && memory->words[at].place < address + size; at++) {
        const uint64_t place = memory->words[at].place;
        const uint8_t *from = (const uint8_t *)&memory->words[at].value;
        uint8_t *to = bytes;
        for (uint64_t i = place < address ? address - place : 0;
             i < WORD && place + i < address + size; i++)
            to[place + i - address] = from[i];
    }
    return true;
}

static int compare_words(const void *a, const void *b) {
    const struct sparse_pair *left = a, *right = b;
    return (left->place > right->place) - (left->place < right->place);
}

static int compare_segments(const void *a, const void *b) {
    const struct memory_segment *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void add_segment(struct memory *memory, uint64_t start, uint64_t bytes, bool is_data) {
    if (bytes > SEGMENT_MOST || !bytes || start > UINT64_C(1) << 47 ||
        memory->segment_count == SEGMENTS_MOST || memory->bytes + bytes > MEMORY_MOST)
        return;
    for (size_t i = 0; i < memory->segment_count; i++)
        if (start < memory->segments[i].end && memory->segments[i].start < start + bytes) return;
    memory->segments[memory->segment_count++] = (struct memory_segment){
        .start = start, .end = start + bytes, .bytes = bytes, .is_writable = true};
    memory->bytes += bytes;
    require(jemalloc_place_add_memory(&memory->place, start, start + bytes));
    if (is_data) require(spans_add(&memory->place.data, start, start + bytes));
}

static void add_pair(struct memory *memory, const struct sparse_pair *pair) {
    const uint64_t address = pair->place / SPARSE_KINDS * SPARSE_KINDS;
    switch (pair->place % SPARSE_KINDS) {
    case SPARSE_WORD:
        memory->words[memory->word_count++] = *pair;
        break;
    case SPARSE_SEGMENT:
    case SPARSE_DATA:
        add_segment(memory, address, pair->value, pair->place % SPARSE_KINDS == SPARSE_DATA);
        break;
    case SPARSE_THREAD:
        if (memory->thread_count < THREADS_MOST) memory->threads[memory->thread_count++] = address;
        break;
    default:
        break;
    }
}

static bool is_counted(const struct glibc_heap *heap, uint64_t size) {
    for (size_t i = 0; i < heap->other.classes.count; i++)
        if (heap->other.classes.items[i].size == size) return true;
    return false;
}

static void check_heap(const struct glibc_heap *heap) {
    uint64_t free = 0, cached = 0, free_found = 0, cached_found = 0, moving = 0, moving_found = 0;
    require(heap->other.name);
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        require(!i || chunk->address >= heap->chunks.items[i - 1].address);
        require(is_counted(heap, chunk->size));
        free_found += chunk->kind == CHUNK_BINNED;
        cached_found += chunk->kind == CHUNK_CACHED;
        moving_found += chunk->kind == CHUNK_MOVING;
    }
    for (size_t i = 0; i < heap->other.classes.count; i++) {
        require(!i || heap->other.classes.items[i].size > heap->other.classes.items[i - 1].size);
        free += heap->other.classes.items[i].free;
        cached += heap->other.classes.items[i].cached;
        moving += heap->other.classes.items[i].moving;
    }
    require(free == free_found && cached == cached_found && moving == moving_found);
    require(moving == heap->other.moving_blocks);
}

static void check_memory(struct memory *memory) {
    const struct memory_view view = {
        .reader = {.read = read_memory, .context = memory},
        .segments = memory->segments,
        .segment_count = memory->segment_count,
    };
    const struct jemalloc_source source = {&view, &memory->place, memory->threads,
                                           memory->thread_count};
    struct tcmalloc_thread threads[THREADS_MOST];
    for (size_t i = 0; i < memory->thread_count; i++)
        threads[i] = (struct tcmalloc_thread){&memory->threads[i], 1, memory->threads[i]};
    const struct tcmalloc_source other = {&view, &memory->place.data, threads,
                                          memory->thread_count};
    struct glibc_heap heap = {0};
    const enum jemalloc_finding first = jemalloc_heap_add(&source, &heap);
    require(first != JEMALLOC_FAILED);
    if (first == JEMALLOC_FOUND) check_heap(&heap);
    glibc_heap_free(&heap);
    heap = (struct glibc_heap){0};
    if (tcmalloc_heap_add(&other, &heap) == TCMALLOC_FOUND) check_heap(&heap);
    glibc_heap_free(&heap);
    heap = (struct glibc_heap){0};
    if (mimalloc_heap_add(&view, &heap) == MIMALLOC_FOUND) check_heap(&heap);
    glibc_heap_free(&heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct memory memory = {0};
    struct sparse_pair pair;
    memory.words = malloc(size + 1);
    require(memory.words);
    for (; size >= sizeof pair; bytes += sizeof pair, size -= sizeof pair) {
        memcpy(&pair, bytes, sizeof pair);
        add_pair(&memory, &pair);
    }
    qsort(memory.words, memory.word_count, sizeof pair, compare_words);
    qsort(memory.segments, memory.segment_count, sizeof *memory.segments, compare_segments);
    jemalloc_place_settle(&memory.place);
    check_memory(&memory);
    jemalloc_place_free(&memory.place);
    free(memory.words);
    return 0;
}
