// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/thread_data.h"

#include <elf.h>
#include <stdlib.h>

#include "tool/base/search.h"

// Of struct pthread in glibc, which lies at the thread's pointer, and which only ever grows.
enum { THREAD_AREA_BYTES = 4096 };

// --- what lies elsewhere

static bool add_elsewhere(struct thread_data *data, const struct thread_stretch *stretch) {
    struct thread_stretch *slot = array_push(&data->elsewhere);
    if (slot) *slot = *stretch;
    return slot;
}

// A stretch lies in one block, or in none. What a file claims of its size may be wrong.
static bool is_in_block(const struct core_reach *reach, const struct thread_stretch *stretch) {
    uint64_t place;
    return block_map_find(&reach->map, stretch->start, &place) &&
           stretch->end <= block_map_end(&reach->map, place);
}

static bool is_outside(const struct core_reach *reach, const struct thread_stretch *stretch) {
    const struct memory_segment *segment = core_segment_of(reach->core, stretch->start);
    uint64_t place;
    return segment && stretch->end <= segment->end &&
           !block_map_find(&reach->map, stretch->start, &place);
}

static bool add_module(struct thread_data *data, const struct core_reach *reach,
                       const struct core_thread *thread, size_t index) {
    const struct thread_locals *locals = &data->modules.items[index].locals;
    struct thread_stretch stretch = {.thread = thread, .module = index};
    if (locals->kind != THREAD_LOCALS_DYNAMIC ||
        !thread_locals_start(data->core, locals, thread, &stretch.start) ||
        __builtin_add_overflow(stretch.start, locals->bytes, &stretch.end))
        return true;
    if (is_in_block(reach, &stretch))
        return spans_add(&data->in_blocks, stretch.start, stretch.end) &&
               add_elsewhere(data, &stretch);
    return !is_outside(reach, &stretch) || add_elsewhere(data, &stretch);
}

// A vector in a block is one that the thread's own area leads to.
static bool add_vector(struct thread_data *data, const struct core_reach *reach,
                       const struct core_thread *thread) {
    struct thread_stretch stretch = {.thread = thread, .module = THREAD_DATA_VECTOR};
    return !thread_locals_vector(data->core, thread, &stretch.start, &stretch.end) ||
           !is_outside(reach, &stretch) || add_elsewhere(data, &stretch);
}

static int by_start(const void *a, const void *b) {
    const struct thread_stretch *one = a, *other = b;
    return (one->start > other->start) - (one->start < other->start);
}

static bool find_elsewhere(struct thread_data *data, const struct core_reach *reach) {
    bool is_ok = true;
    for (size_t i = 0; i < data->core->threads.count && is_ok; i++) {
        const struct core_thread *thread = &data->core->threads.items[i];
        size_t before = data->elsewhere.count;
        for (size_t k = 0; k < data->modules.count && is_ok; k++)
            is_ok = add_module(data, reach, thread, k);
        if (is_ok && data->elsewhere.count > before) is_ok = add_vector(data, reach, thread);
    }
    if (data->elsewhere.count)
        qsort(data->elsewhere.items, data->elsewhere.count, sizeof *data->elsewhere.items,
              by_start);
    spans_settle(&data->in_blocks);
    return is_ok;
}

// --- all of it

static bool note_module(void *context, const struct elf_module *module) {
    struct thread_data *data = context;
    const struct thread_locals locals = thread_locals_of(data->core, module);
    data->beside_bytes += locals.bytes + locals.align;
    struct thread_data_module *slot = locals.kind ? array_push(&data->modules) : NULL;
    if (slot) *slot = (struct thread_data_module){locals, module->files};
    return slot || !locals.kind;
}

bool thread_data_find(const struct core_reach *reach, struct core_types *types,
                      struct thread_data *data) {
    *data = (struct thread_data){.core = reach->core};
    if (!types) return true;
    if (core_types_each_module(types, note_module, data) && find_elsewhere(data, reach))
        return true;
    thread_data_free(data);
    return false;
}

void thread_data_free(struct thread_data *data) {
    array_free(&data->modules);
    array_free(&data->elsewhere);
    spans_free(&data->in_blocks);
}

// --- answers

static const struct thread_stretch *stretch_at(const struct thread_data *data, uint64_t address) {
    size_t next;
    search_first(next, data->elsewhere.count, data->elsewhere.items[next].start > address);
    const struct thread_stretch *stretch = next ? &data->elsewhere.items[next - 1] : NULL;
    return stretch && address < stretch->end ? stretch : NULL;
}

// x86-64: thread-local data of modules that were there at the start lies below the thread's
// pointer, on aarch64 behind it ("ELF Handling For Thread-Local Storage", 3.4.6 and 3.4.2).
const struct core_thread *thread_data_thread(const struct thread_data *data, uint64_t address) {
    const struct core_image *core = data->core;
    const struct thread_stretch *stretch = stretch_at(data, address);
    bool is_below = core->machine != EM_AARCH64;
    if (stretch) return stretch->thread;
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        uint64_t start = thread->pointer - (is_below ? data->beside_bytes : 0);
        uint64_t end = thread->pointer + (is_below ? 0 : data->beside_bytes);
        if (thread->pointer && address >= start && address < end + THREAD_AREA_BYTES) return thread;
    }
    return NULL;
}

bool thread_data_name(const struct thread_data *data, const struct core_thread *thread,
                      uint64_t address, char *name, size_t size) {
    for (size_t i = 0; i < data->modules.count; i++) {
        const struct thread_data_module *module = &data->modules.items[i];
        uint64_t start;
        if (thread_locals_start(data->core, &module->locals, thread, &start) &&
            address - start < module->locals.bytes)
            return thread_locals_name(&module->files, address - start, name, size);
    }
    return false;
}
