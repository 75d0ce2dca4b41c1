// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/owner_roots.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/heap/frame_variables.h"
#include "tool/heap/frames.h"
#include "tool/heap/roots.h"
#include "tool/model/index_table.h"

enum { NAME_BYTES = OWNER_NAME_BYTES / 2 };

// What lies from `start` on, up to the next one's, is this function's.
struct stack_frame {
    const struct core_thread *thread;
    uint64_t start;
    uint32_t root;
};

struct finding {
    struct owner_roots *roots;
    struct core_graph *graph;
    struct core_reach *reach;
    struct core_types *types;
    struct index_table names;          // of roots
    ARRAY(struct stack_frame) frames;  // by thread, ascending
    struct frame_variables variables;
    const struct thread_data *data;
    const struct memory_segment *plain;  // of core_root_near
    bool is_failed;
};

// --- roots by name

static uint64_t hash_of(const struct owner_root *root) {
    uint64_t hash = hash_mix(root->tid, index_table_seed() + root->kind);
    for (const char *at = root->name; *at; at++) hash = hash_mix(hash, (uint8_t)*at);
    return hash;
}

// Variables of one name in two libraries are two.
static bool are_alike(const struct owner_root *one, const struct owner_root *other) {
    bool is_same_module = one->module == other->module ||
                          (one->module && other->module && !strcmp(one->module, other->module));
    return one->kind == other->kind && one->tid == other->tid && one->above == other->above &&
           is_same_module && !strcmp(one->name, other->name);
}

// The root like this one; UINT32_MAX without memory.
static uint32_t root_like(struct finding *finding, const struct owner_root *wanted) {
    struct owner_roots *roots = finding->roots;
    uint64_t hash = hash_of(wanted);
    struct index_probe probe = index_probe_start(&finding->names, hash);
    for (uint32_t index; index_probe_next(&finding->names, &probe, &index);) {
        if (are_alike(&roots->items.items[index], wanted)) return index;
    }
    uint32_t index = (uint32_t)roots->items.count;
    struct owner_root *root = array_push(&roots->items);
    if (!root) return UINT32_MAX;
    *root = *wanted;
    root->name = strdup(wanted->name);
    return root->name && index_table_insert(&finding->names, hash, index) ? index : UINT32_MAX;
}

static uint32_t root_of_thread(struct finding *finding, const struct core_thread *thread) {
    const struct owner_root root = {.name = "",
                                    .kind = OWNER_THREAD,
                                    .tid = thread->tid,
                                    .above = OWNER_EVERYTHING,
                                    .rank = OWNER_PASSING};
    return root_like(finding, &root);
}

// A variable of a function.
static uint32_t root_of_variable(struct finding *finding, const struct stack_variable *variable,
                                 uint32_t frame) {
    const struct owner_root root = {.name = variable->name,
                                    .kind = OWNER_VARIABLE,
                                    .tid = variable->thread->tid,
                                    .above = frame,
                                    .rank = OWNER_PASSING};
    return frame == UINT32_MAX ? frame : root_like(finding, &root);
}

// A part of what a thread has in use.
static uint32_t root_in_thread(struct finding *finding, const struct core_thread *thread,
                               const char *name) {
    const struct owner_root root = {.name = name,
                                    .kind = OWNER_FRAME,
                                    .tid = thread->tid,
                                    .above = root_of_thread(finding, thread),
                                    .rank = OWNER_PASSING};
    return root.above == OWNER_EVERYTHING ? UINT32_MAX : root_like(finding, &root);
}

// --- frames of stacks

// "parse" for an address in it, "libfoo.so.1" where there is no symbol: without distances.
static void name_function(struct finding *finding, uint64_t pc, char name[NAME_BYTES]) {
    if (!core_types_place(finding->types, pc, name, NAME_BYTES)) snprintf(name, NAME_BYTES, "?");
    char *distance = strrchr(name, '+');
    if (distance) *distance = 0;
}

static bool note_frame(void *context, const struct thread_frame *found) {
    struct finding *finding = context;
    char name[NAME_BYTES];
    name_function(finding, found->pc, name);
    struct stack_frame *frame = array_push(&finding->frames);
    if (frame)
        *frame = (struct stack_frame){found->thread, found->stack,
                                      root_in_thread(finding, found->thread, name)};
    finding->is_failed |= !frame || frame->root == UINT32_MAX;
    return !finding->is_failed;
}

static int by_thread_and_start(const void *a, const void *b) {
    const struct stack_frame *one = a, *other = b;
    if (one->thread != other->thread) return one->thread < other->thread ? -1 : 1;
    return one->start < other->start ? -1 : one->start > other->start;
}

// Roots of frames that no word is found in are taken away by nobody: they own nothing.
static bool find_frames(struct finding *finding) {
    if (finding->types) frames_each(finding->reach->core, finding->types, note_frame, finding);
    if (finding->frames.count)
        qsort(finding->frames.items, finding->frames.count, sizeof *finding->frames.items,
              by_thread_and_start);
    return !finding->is_failed;
}

// The frame that an address of the thread's stack lies in: the last one that begins at or below
// it, or what is below the innermost one, which functions may use too.
static uint32_t frame_on_stack(struct finding *finding, const struct core_thread *thread,
                               uint64_t address) {
    const struct stack_frame wanted = {.thread = thread, .start = address};
    size_t low = 0, high = finding->frames.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_thread_and_start(&finding->frames.items[middle], &wanted) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    const struct stack_frame *frames = finding->frames.items;
    if (low && frames[low - 1].thread == thread) return frames[low - 1].root;
    if (low < finding->frames.count && frames[low].thread == thread) return frames[low].root;
    return root_of_thread(finding, thread);
}

static uint32_t root_on_stack(struct finding *finding, const struct core_thread *thread,
                              uint64_t address) {
    const struct stack_variable *variable = frame_variable_at(&finding->variables, thread, address);
    uint32_t frame = frame_on_stack(finding, thread, address);
    return variable ? root_of_variable(finding, variable, frame) : frame;
}

// --- what an address belongs to

// "held" for an address in a variable, without the distance from its start. False: it is behind the
// module, in memory that only looks like a part of its data.
static bool name_variable(struct finding *finding, const struct core_root *root, uint64_t address,
                          char name[OWNER_NAME_BYTES]) {
    char module[NAME_BYTES];
    if (!finding->types || !core_types_place(finding->types, address, name, OWNER_NAME_BYTES))
        return false;
    char *distance = strrchr(name, '+');
    text_escape(module, sizeof module, text_base_name(root->file->path));
    if (distance) *distance = 0;
    if (!name[0] || !strcmp(name, module))
        snprintf(name, OWNER_NAME_BYTES, OWNER_DATA_OF "%s", module);
    return true;
}

// A variable, below all that is the thread's own.
static uint32_t root_thread_local(struct finding *finding, const struct core_thread *thread,
                                  uint64_t address) {
    char name[OWNER_NAME_BYTES];
    const struct owner_root all = {
        .name = "", .kind = OWNER_THREAD_LOCAL, .tid = thread->tid, .above = OWNER_EVERYTHING};
    const struct owner_root variable = {.name = name,
                                        .kind = OWNER_VARIABLE,
                                        .tid = thread->tid,
                                        .above = root_like(finding, &all)};
    bool has_name = variable.above != UINT32_MAX &&
                    thread_data_name(finding->data, thread, address, name, sizeof name);
    return has_name ? root_like(finding, &variable) : variable.above;
}

static uint32_t root_at(struct finding *finding, uint64_t address) {
    char name[OWNER_NAME_BYTES];
    struct owner_root memory = {.name = name, .above = OWNER_EVERYTHING};
    const struct core_thread *thread = thread_data_thread(finding->data, address);
    if (thread) return root_thread_local(finding, thread, address);
    const struct core_root root = core_root_near(finding->reach->core, address, &finding->plain);
    if (root.thread) return root_on_stack(finding, root.thread, address);
    bool is_allocators = root.file ? core_file_is_allocator(root.file) : true;
    if (is_allocators && !finding->reach->are_all_glibc) memory.rank = OWNER_ALLOCATOR;
    bool is_variable = root.file && name_variable(finding, &root, address, name);
    if (is_variable) memory.module = root.file->path;
    if (!is_variable) snprintf(name, sizeof name, "other memory of the process");
    return root_like(finding, &memory);
}

// --- which blocks they refer to

static bool add_edge(struct finding *finding, uint32_t root, uint64_t word, uint64_t place) {
    struct owner_roots *roots = finding->roots;
    uint32_t number = core_graph_number(finding->graph, place);
    core_graph_meet(finding->graph, word, place, number);
    size_t count = roots->edges.count;
    const struct owner_edge *last = count ? &roots->edges.items[count - 1] : NULL;
    if (root == UINT32_MAX) return false;
    if (last && last->root == root && last->number == number) return true;
    struct owner_edge *edge = array_push(&roots->edges);
    if (edge) *edge = (struct owner_edge){root, number};
    return edge;
}

static bool note_word(void *context, const struct core_word *word) {
    struct finding *finding = context;
    uint64_t place;
    return !block_map_find(&finding->reach->map, word->value, &place) ||
           add_edge(finding, root_at(finding, word->at), word->value, place);
}

static bool note_registers(struct finding *finding) {
    const struct core_image *core = finding->reach->core;
    uint64_t place;
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        for (uint32_t k = 0; k < thread->register_count; k++)
            if (block_map_find(&finding->reach->map, thread->registers[k], &place) &&
                !add_edge(finding, root_in_thread(finding, thread, "registers"),
                          thread->registers[k], place))
                return false;
    }
    return true;
}

// Notes what threads within a call move: in use or free, but not lost.
static bool note_moving(struct finding *finding) {
    const struct owner_root moving = {.name = "blocks that threads within a call may be moving",
                                      .above = OWNER_EVERYTHING};
    const struct glibc_heap *heap = &finding->reach->heap;
    uint64_t place;
    for (size_t i = 0; heap->other.moving_blocks && i < heap->chunks.count; i++) {
        const uint64_t address = heap->chunks.items[i].address;
        if (heap->chunks.items[i].kind == CHUNK_MOVING &&
            block_map_find(&finding->reach->map, address, &place) &&
            !add_edge(finding, root_like(finding, &moving), address, place))
            return false;
    }
    return true;
}

static bool find_edges(struct finding *finding) {
    const struct spans *roots = &finding->reach->roots, *data = &finding->data->in_blocks;
    struct core_scan scan = {.core = finding->reach->core,
                             .map = &finding->reach->map,
                             .see = note_word,
                             .context = finding};
    bool is_ok = core_scan_open(&scan) && note_registers(finding) && note_moving(finding);
    for (size_t i = 0; i < roots->items.count && is_ok; i++)
        is_ok = core_scan_words(&scan, roots->items.items[i].start, roots->items.items[i].end);
    for (size_t i = 0; i < data->items.count && is_ok; i++)
        is_ok = core_scan_words(&scan, data->items.items[i].start, data->items.items[i].end);
    core_scan_close(&scan);
    return is_ok;
}

bool owner_roots_find(struct core_reach *reach, struct core_types *types,
                      const struct thread_data *data, struct core_graph *graph, bool has_locals,
                      struct owner_roots *roots) {
    struct finding finding = {
        .roots = roots, .graph = graph, .reach = reach, .types = types, .data = data};
    const struct owner_root lost = {.name = CORE_LEAKED_NAME, .above = OWNER_EVERYTHING};
    bool is_ok =
        find_frames(&finding) &&
        (!types || !has_locals || frame_variables_find(reach->core, types, &finding.variables)) &&
        find_edges(&finding);
    frame_variables_free(&finding.variables);
    roots->leaked = is_ok ? root_like(&finding, &lost) : UINT32_MAX;
    array_free(&finding.frames);
    index_table_free(&finding.names);
    return roots->leaked != UINT32_MAX;
}

void owner_roots_free(struct owner_roots *roots) {
    for (size_t i = 0; i < roots->items.count; i++)
        free((char *)(uintptr_t)roots->items.items[i].name);
    array_free(&roots->items);
    array_free(&roots->edges);
}

void owner_root_label(const struct owner_root *root, uint32_t main_tid,
                      char label[OWNER_NAME_BYTES]) {
    bool is_thread = root->kind == OWNER_THREAD || root->kind == OWNER_THREAD_LOCAL;
    const char *part = root->kind == OWNER_THREAD ? "stack and registers" : "thread-local data";
    if (!is_thread)
        snprintf(label, OWNER_NAME_BYTES, "%s", root->name);
    else if (main_tid)
        snprintf(label, OWNER_NAME_BYTES, "%s of %s", part,
                 root->tid == main_tid ? "the main thread" : "other threads");
    else
        snprintf(label, OWNER_NAME_BYTES, "%s of thread %" PRIu32, part, root->tid);
}
