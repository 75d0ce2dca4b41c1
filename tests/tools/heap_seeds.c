// SPDX-License-Identifier: Apache-2.0
// Writes what readers of other allocators' heaps read of a core dump, for their fuzzer to start
// from: heap_seeds CORE FILE. Those that are kept in tests/fuzz/corpus/heaps are of a program with
// some blocks, preloaded with each library and dumped by gcore.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/sparse_memory.h"
#include "tool/base/array.h"
#include "tool/heap/image.h"
#include "tool/jemalloc/heap.h"
#include "tool/mimalloc/heap.h"
#include "tool/tcmalloc/heap.h"

// Fills tcmalloc's cache of pages, which no reader believes.
#define EMPTY_CACHE UINT64_C(0x8080808080808080)

struct watch {
    const struct memory_view *view;
    struct spans seen;
};

static bool read_watched(const void *context, uint64_t address, void *bytes, size_t size) {
    struct watch *watch = *(struct watch *const *)context;
    if (!memory_read(&watch->view->reader, address, bytes, size)) return false;
    return spans_add(&watch->seen, address, address + size);
}

// Tries each allocator with the data of one module alone, so that nothing is read in vain.
static bool find_heap(const struct core_image *core, struct memory_view *view, struct span *data) {
    uint64_t pointers[64];
    size_t count = 0;
    for (; count < core->threads.count && count < sizeof pointers / sizeof *pointers; count++)
        pointers[count] = core->threads.items[count].pointer;
    struct watch *watch = *(struct watch *const *)view->reader.context;
    for (size_t i = 0; i < core->segments.count; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        struct jemalloc_place place = {0};
        struct glibc_heap heap = {0};
        const struct jemalloc_source source = {view, &place, pointers, count};
        *data = (struct span){segment->start, segment->start + segment->bytes};
        if (!segment->is_writable || !core_module_of(core, segment->start)) continue;
        watch->seen = (struct spans){0};
        for (size_t k = 0; k < core->segments.count; k++)
            jemalloc_place_add_memory(&place, core->segments.items[k].start,
                                      core->segments.items[k].end);
        spans_add(&place.data, data->start, data->end);
        jemalloc_place_settle(&place);
        if (jemalloc_heap_add(&source, &heap) == JEMALLOC_FOUND) return true;
        watch->seen = (struct spans){0};
        const struct tcmalloc_source other = {view, &place.data, NULL, 0};
        if (tcmalloc_heap_add(&other, &heap) == TCMALLOC_FOUND) return true;
        watch->seen = (struct spans){0};
        if (mimalloc_heap_add(view, &heap) == MIMALLOC_FOUND) return true;
    }
    return false;
}

static void put(FILE *file, uint64_t place, uint64_t value) {
    const struct sparse_pair pair = {place, value};
    fwrite(&pair, sizeof pair, 1, file);
}

static bool write_seed(const struct core_image *core, struct watch *watch, const struct span *data,
                       FILE *file) {
    spans_settle(&watch->seen);
    for (size_t i = 0; i < core->segments.count; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        uint64_t at = segment->start;
        struct span gap;
        if (spans_gap(&watch->seen, &at, segment->end, &gap) && gap.start == segment->start &&
            gap.end == segment->end)
            continue;
        put(file, segment->start | (data->start == segment->start ? SPARSE_DATA : SPARSE_SEGMENT),
            segment->bytes);
    }
    for (size_t i = 0; i < core->threads.count; i++)
        put(file, core->threads.items[i].pointer | SPARSE_THREAD, 0);
    for (size_t i = 0; i < watch->seen.items.count; i++) {
        const struct span *span = &watch->seen.items.items[i];
        for (uint64_t at = span->start / 8 * 8, word; at < span->end; at += sizeof word)
            if (memory_read_word(&watch->view->reader, at, &word) && word && word != EMPTY_CACHE)
                put(file, at | SPARSE_WORD, word);
    }
    return !fclose(file);
}

int main(int argc, char **argv) {
    struct core_image core;
    struct error error;
    struct span data;
    if (argc != 3 || !core_open(argv[1], &core, &error)) return 2;
    const struct memory_view real = core_view(&core);
    struct watch watch = {.view = &real}, *context = &watch;
    struct memory_view view = real;
    view.reader = (struct memory_reader){.read = read_watched, .context = &context};
    if (!find_heap(&core, &view, &data)) return 1;
    FILE *file = fopen(argv[2], "we");
    return file && write_seed(&core, &watch, &data, file) ? 0 : 3;
}
