// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/other_heaps.h"

#include <stdlib.h>

#include "tool/base/text.h"
#include "tool/heap/roots.h"
#include "tool/jemalloc/extents.h"
#include "tool/jemalloc/heap.h"
#include "tool/mimalloc/heap.h"
#include "tool/proc/maps.h"
#include "tool/proc/pagemap.h"
#include "tool/proc/remote.h"
#include "tool/tcmalloc/heap.h"
#include "tool/tcmalloc/places.h"

// Finds the writable data of modules, with the zeroed memory behind their files.
static bool find_data(const struct core_image *core, struct jemalloc_place *place) {
    bool is_ok = true;
    for (size_t i = 0; i < core->segments.count && is_ok; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        const uint64_t end = segment->start + segment->bytes;
        is_ok = jemalloc_place_add_memory(place, segment->start, end);
        if (is_ok && segment->is_writable && core_module_of(core, segment->start))
            is_ok = spans_add(&place->data, segment->start, end);
    }
    jemalloc_place_settle(place);
    return is_ok;
}

static bool is_of_allocator(const struct core_image *core, uint64_t address) {
    const struct core_file *file = core_file_of(core, address);
    return file && core_file_is_allocator(file);
}

// Says whether a register has an address in an allocator's library, or the top of the stack, which
// has those that functions return to. A word from an earlier call counts too.
static bool is_within_call(const struct core_image *core, const struct core_thread *thread) {
    enum { STACK_WORDS = 64 };
    uint64_t word;
    bool is_within = false;
    for (uint32_t i = 0; i < thread->register_count && !is_within; i++)
        is_within = is_of_allocator(core, thread->registers[i]);
    for (unsigned i = 0; i < STACK_WORDS && thread->stack && !is_within; i++)
        is_within = core_read(core, thread->stack + i * sizeof word, &word, sizeof word) &&
                    is_of_allocator(core, word);
    return is_within;
}

// Counts the threads that may be within a call: of an allocator that is a part of the program only
// its reader may know some.
static void count_busy(const struct core_image *core, struct other_heap *other) {
    uint64_t count = 0;
    for (size_t i = 0; i < core->threads.count; i++)
        count += is_within_call(core, &core->threads.items[i]);
    if (count > other->busy_threads) other->busy_threads = count;
}

static bool add_tcmalloc(const struct core_image *core, const struct jemalloc_place *place,
                         struct glibc_heap *heap) {
    const struct memory_view view = core_view(core);
    struct tcmalloc_thread *threads = calloc(core->threads.count + 1, sizeof *threads);
    if (!threads) return false;
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        threads[i] =
            (struct tcmalloc_thread){thread->registers, thread->register_count, thread->stack};
    }
    const struct tcmalloc_source source = {&view, &place->data, threads, core->threads.count};
    const bool is_ok = tcmalloc_heap_add(&source, heap) != TCMALLOC_FAILED;
    free(threads);
    return is_ok;
}

bool core_add_other_heaps(const struct core_image *core, struct glibc_heap *heap) {
    struct jemalloc_place place = {0};
    const struct memory_view view = core_view(core);
    uint64_t *pointers = calloc(core->threads.count + 1, sizeof *pointers);
    bool is_ok = pointers && find_data(core, &place);
    for (size_t i = 0; i < core->threads.count && is_ok; i++)
        pointers[i] = core->threads.items[i].pointer;
    const struct jemalloc_source source = {&view, &place, pointers, core->threads.count};
    is_ok = is_ok && jemalloc_heap_add(&source, heap) != JEMALLOC_FAILED;
    if (is_ok && !heap->other.name) is_ok = mimalloc_heap_add(&view, heap) != MIMALLOC_FAILED;
    if (is_ok && !heap->other.name) is_ok = add_tcmalloc(core, &place, heap);
    if (is_ok && heap->other.name) count_busy(core, &heap->other);
    free(pointers);
    jemalloc_place_free(&place);
    return is_ok;
}

bool core_refuse_heap(const struct core_image *core, struct error *error) {
    for (size_t i = 0; i < core->files.count; i++) {
        if (!core_file_is_allocator(&core->files.items[i])) continue;
        return error_set(
            error,
            "there is no heap of glibc's malloc in it, nor of " OTHER_HEAPS_READ
            " as they are usually built; it used %s, whose blocks are known only of recorded "
            "processes",
            text_base_name(core->files.items[i].path));
    }
    return false;
}

static bool begins_segment(const struct memory_reader *memory, const struct mapping *mapping) {
    const uint64_t step = MIMALLOC_SEGMENT_BYTES;
    for (uint64_t at = (mapping->start + step - 1) / step * step; at < mapping->end; at += step)
        if (mimalloc_is_segment(memory, at)) return true;
    return false;
}

// Finds the data of modules, with the zeroed memory right behind their files. `has_segment` becomes
// true if there is one of mimalloc's.
static bool find_data_of_process(pid_t pid, const struct memory_reader *memory,
                                 struct jemalloc_place *place, bool *has_segment) {
    struct maps maps;
    struct mapping mapping;
    struct error unused;
    uint64_t module_end = 0;
    bool is_ok = true;
    if (!maps_open(&maps, pid, "maps", &unused)) return false;
    while (is_ok && maps_next(&maps, &mapping)) {
        bool is_file = mapping_is_file(&mapping);
        if (mapping.permissions[1] == 'w' && (is_file || mapping.start == module_end))
            is_ok = spans_add(&place->data, mapping.start, mapping.end);
        else if (mapping.permissions[1] == 'w' && !*has_segment)
            *has_segment = begins_segment(memory, &mapping);
        is_ok = is_ok && jemalloc_place_add_memory(place, mapping.start, mapping.end);
        if (is_file) module_end = mapping.end;
    }
    maps_close(&maps);
    jemalloc_place_settle(place);
    return is_ok;
}

static bool read_present(const void *context, uint64_t address, void *bytes, size_t size) {
    return remote_read_present(context, address, bytes, size);
}

bool process_has_other_heap(pid_t pid) {
    struct jemalloc_place place = {0};
    struct tcmalloc_places places;
    struct remote remote = remote_of(pid);
    remote.pagemap = pagemap_open(pid);
    const struct memory_reader memory = {.read = read_present, .context = &remote};
    bool has = false;
    if (remote.pagemap.file >= 0 && find_data_of_process(pid, &memory, &place, &has))
        has = has || jemalloc_find_root(&memory, &place) ||
              tcmalloc_find_places(&memory, &place.data, &places);
    jemalloc_place_free(&place);
    remote_close(&remote);
    return has;
}

static uint64_t there(const struct core_image *core, const struct stopped_image *live,
                      uint64_t start, uint64_t end) {
    return live ? stopped_resident_bytes(live, start, end) : core_present_bytes(core, start, end);
}

uint64_t other_heap_there(const struct core_image *core, const struct stopped_image *live,
                          const struct spans *spans) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < spans->items.count; i++)
        bytes += there(core, live, spans->items.items[i].start, spans->items.items[i].end);
    return bytes;
}

uint64_t other_heap_used(const struct core_image *core, const struct stopped_image *live,
                         const struct glibc_heap *heap) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (chunk_is_used(chunk))
            bytes += there(core, live, chunk->address, chunk->address + chunk->size);
    }
    return bytes;
}
