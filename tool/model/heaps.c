// SPDX-License-Identifier: Apache-2.0
#include "tool/model/heaps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/decode.h"
#include "tool/model/narrow.h"

bool heap_stack_is_used(const struct cairn_heap_stack *entry) {
    return entry->is_ready && entry->calls;
}

bool heaps_build(struct profile *profile, struct decoder *decoder) {
    size_t most = recording_count(profile->recording, CAIRN_SECTION_HEAP_STACKS);
    struct cairn_heap_stack entry;
    if (most > CAIRN_HEAP_STACK_LIMIT) most = CAIRN_HEAP_STACK_LIMIT;
    if (!most) return true;
    profile->heap_parts = calloc(most, sizeof *profile->heap_parts);
    if (!profile->heap_parts) return false;
    for (size_t i = 0; i < most && recording_heap_stack(profile->recording, i, &entry); i++) {
        uint32_t node = TREE_ROOT;
        bool has_stack = entry.cell != CAIRN_CELL_OTHER && entry.cell < profile->cell_count;
        if (!heap_stack_is_used(&entry)) continue;
        if (has_stack && !decoder_stack(decoder, entry.cell, &node)) return false;
        profile->heap_parts[profile->heap_part_count++] =
            (struct heap_part){.node = node, .number = (uint32_t)i, .entry = entry};
    }
    return true;
}

bool heap_points_find(const struct recording *recording, uint32_t scope,
                      struct cairn_heap_points *points) {
    const struct recording_section *section = &recording->sections[CAIRN_SECTION_HEAP_POINTS];
    for (size_t i = 0; i < CAIRN_HEAP_POINTS_LIMIT && i < section->count; i++) {
        uint32_t own;  // they are large, and many are looked through for each name
        memcpy(&own, section->bytes + i * section->entry_bytes, sizeof own);
        if (own != scope || !recording_heap_points(recording, i, points)) continue;
        if (points->is_ready && points->point_ns) return true;
    }
    return false;
}

bool heap_points_at(const struct cairn_heap_points *points, uint64_t at_ns,
                    struct cairn_point *point) {
    uint64_t index = at_ns / points->point_ns + 1;
    if (index > CAIRN_HEAP_POINT_COUNT) index = CAIRN_HEAP_POINT_COUNT;
    while (index-- > 0) {
        *point = points->points[index];
        if (point->is_used) return true;
    }
    return false;
}

static uint32_t heap_of(const struct scopes *scopes, uint32_t id) {
    uint32_t parent = id < scopes->count ? scopes->list[id].parent : 0;
    return parent && scopes->list[parent].kind == CAIRN_SCOPE_POOL ? parent : id;
}

// By scope, with what is within it.
struct held {
    uint64_t bytes;
    bool has_stacks;
};

static void add_held(const struct scopes *scopes, struct recording *recording, struct held *held) {
    struct cairn_heap_stack entry;
    for (size_t i = 0; i < CAIRN_HEAP_STACK_LIMIT && recording_heap_stack(recording, i, &entry);
         i++) {
        if (!heap_stack_is_used(&entry) || entry.scope >= scopes->count) continue;
        held[entry.scope].has_stacks = true;
        uint32_t heap = heap_of(scopes, entry.scope);
        held[heap].has_stacks = true;
        held[heap].bytes += entry.allocated_bytes - entry.freed_bytes;
    }
}

static bool list_names(struct heap_names *names, const struct held *held) {
    for (uint32_t id = 1; id < names->scopes.count; id++) {
        if (names->scopes.list[id].kind != CAIRN_SCOPE_POOL || !held[id].has_stacks) continue;
        struct heap_name *name = array_push(&names->list);
        if (!name) return false;
        uint32_t heap = heap_of(&names->scopes, id);
        int64_t bytes = (int64_t)held[heap].bytes;
        uint64_t peak_bytes = names->scopes.list[heap].entry.heap_peak_bytes;
        *name = (struct heap_name){id, heap, bytes > 0 && (uint64_t)bytes > peak_bytes};
    }
    return true;
}

bool heap_names_read(struct heap_names *names, struct recording *recording) {
    *names = (struct heap_names){.list = {.items = NULL}};
    if (!scopes_read(&names->scopes, recording)) return false;
    struct held *held = calloc(names->scopes.count + 1, sizeof *held);
    if (held) add_held(&names->scopes, recording, held);
    bool is_ok = held && list_names(names, held);
    free(held);
    if (!is_ok) heap_names_free(names);
    return is_ok;
}

void heap_names_free(struct heap_names *names) {
    scopes_free(&names->scopes);
    array_free(&names->list);
    *names = (struct heap_names){.list = {.items = NULL}};
}

const char *heap_name_path(const struct heap_names *names, const struct heap_name *name) {
    return names->scopes.list[name->scope].path;
}

const struct heap_name *heap_names_find(const struct heap_names *names, const char *path) {
    for (size_t i = 0; i < names->list.count; i++)
        if (!strcmp(heap_name_path(names, &names->list.items[i]), path))
            return &names->list.items[i];
    return NULL;
}

bool heap_names_refuse(const struct heap_names *names, const char *path, struct error *error) {
    enum { LIST_BYTES = 512, NAME_BYTES = 128 };
    char list[LIST_BYTES] = "", safe[NAME_BYTES], wanted[NAME_BYTES];
    for (size_t i = 0; i < names->list.count; i++) {
        const struct heap_name *name = &names->list.items[i];
        if (name->scope != name->heap) continue;
        size_t used = strlen(list);
        text_escape(safe, sizeof safe, heap_name_path(names, name));
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", safe);
    }
    text_escape(wanted, sizeof wanted, path);
    if (!*list)
        return error_set(error, "--heap %s: no allocator by name was recorded (--wrap)", wanted);
    if (!*wanted)
        return error_set(error, "--heap '': which of them? %s; --view pools has all of them", list);
    return error_set(error, "--heap %s: no such heap; there are: %s", wanted, list);
}

bool heap_name_has(const struct heap_names *names, const struct heap_name *name,
                   const struct cairn_heap_stack *entry) {
    return entry->scope == name->scope ||
           (name->scope == name->heap && heap_of(&names->scopes, entry->scope) == name->heap);
}

struct cell_values heap_stack_values(const struct cairn_heap_stack *entry) {
    int64_t bytes = (int64_t)(entry->allocated_bytes - entry->freed_bytes);
    int64_t blocks = (int64_t)(entry->calls - entry->frees);
    return (struct cell_values){.calls = entry->calls,
                                .frees = entry->frees,
                                .allocated_bytes = entry->allocated_bytes,
                                .freed_bytes = entry->freed_bytes,
                                .peak_bytes = bytes,
                                .peak_blocks = blocks,
                                .exit_bytes = bytes,
                                .exit_blocks = blocks};
}

struct cell_values heap_name_values(const struct heap_names *names, const struct heap_name *name,
                                    const struct cairn_heap_stack *entry) {
    struct cell_values values = heap_stack_values(entry);
    uint32_t epoch = names->scopes.list[name->heap].entry.heap_epoch;
    if (name->is_peak_now || entry->epoch != epoch) return values;
    values.peak_bytes = entry->peak_bytes;
    values.peak_blocks = entry->peak_blocks;
    return values;
}

static int compare_parts(const void *a, const void *b) {
    uint32_t first = ((const struct heap_part *)a)->node;
    uint32_t second = ((const struct heap_part *)b)->node;
    return first < second ? -1 : first > second;
}

// Cells are of this heap from now on.
static bool begin_cells(struct profile *profile) {
    profile->heap_cell_of = calloc(profile->cell_count + 1, sizeof *profile->heap_cell_of);
    profile->heap_cells = calloc(profile->heap_part_count + 1, sizeof *profile->heap_cells);
    if (!profile->heap_cell_of || !profile->heap_cells) return false;
    memset(profile->stack_of_cell, 0, profile->cell_count * sizeof *profile->stack_of_cell);
    return true;
}

// A cell has one stack, and may have entries of several names. `count`: cells so far.
static void add_to_cell(struct profile *profile, const struct cairn_heap_stack *entry,
                        const struct cell_values *values, uint32_t stack, uint32_t *count) {
    if (entry->cell >= profile->cell_count) return;
    uint32_t *number = &profile->heap_cell_of[entry->cell];
    if (!*number) *number = ++*count;
    struct cairn_heap_stack *sum = &profile->heap_cells[*number - 1];
    profile->stack_of_cell[entry->cell] = stack + 1;
    sum->calls += values->calls;
    sum->frees += values->frees;
    sum->allocated_bytes += values->allocated_bytes;
    sum->freed_bytes += values->freed_bytes;
    sum->peak_bytes = figures_add(sum->peak_bytes, values->peak_bytes);
    sum->peak_blocks = figures_add(sum->peak_blocks, values->peak_blocks);
}

bool heaps_cell(const struct profile *profile, size_t cell, struct cell_values *values) {
    uint32_t number = cell < profile->cell_count ? profile->heap_cell_of[cell] : 0;
    if (!number) return false;
    const struct cairn_heap_stack *sum = &profile->heap_cells[number - 1];
    *values = heap_stack_values(sum);
    values->peak_bytes = sum->peak_bytes;
    values->peak_blocks = sum->peak_blocks;
    return true;
}

// The stacks in the order of the tree, one of each node.
static size_t sum_up(struct profile *profile, const struct heap_names *names,
                     const struct heap_name *name, struct stack *stacks) {
    size_t count = 0;
    uint32_t cells = 0;
    for (size_t i = 0; i < profile->heap_part_count; i++) {
        struct heap_part *part = &profile->heap_parts[i];
        part->is_shown = heap_name_has(names, name, &part->entry);
        if (!part->is_shown) continue;
        if (!count || stacks[count - 1].node != part->node) {
            stacks[count].node = part->node;
            stacks[count].number = (uint32_t)count;
            count++;
        }
        struct cell_values values = heap_name_values(names, name, &part->entry);
        stack_add(&stacks[count - 1], &values);
        add_to_cell(profile, &part->entry, &values, (uint32_t)count - 1, &cells);
    }
    return count;
}

// What else is known of the recording is malloc's.
static void put_in_place(struct profile *profile, struct stack *stacks, size_t count) {
    free(profile->stacks);
    profile->stacks = stacks;
    profile->stack_count = profile->built_stack_count = count;
    profile->freed_at.count = 0;
    profile->log = NULL;
    profile->sampling = (struct cairn_sampling){0};
    profile->totals = (struct profile_totals){0};
    profile->peak.bytes = profile->peak.blocks = 0;
    profile->exit_bytes = profile->exit_blocks = 0;
    memset(profile->estimates, 0, sizeof profile->estimates);
    memset(profile->incomplete, 0, sizeof profile->incomplete);
    for (size_t i = 0; i < count; i++) {
        const struct stack *stack = &stacks[i];
        profile->totals.allocations += stack->allocations;
        profile->totals.frees += stack->frees;
        profile->totals.allocated_bytes += stack->allocated_bytes;
        profile->totals.freed_bytes += stack->freed_bytes;
        profile->peak.bytes = figures_add(profile->peak.bytes, stack->peak_bytes);
        profile->peak.blocks = figures_add(profile->peak.blocks, stack->peak_blocks);
        profile->exit_bytes = figures_add(profile->exit_bytes, stack->exit_bytes);
        profile->exit_blocks = figures_add(profile->exit_blocks, stack->exit_blocks);
    }
}

static bool show(struct profile *profile, const struct heap_names *names,
                 const struct heap_name *name, struct error *error) {
    struct stack *stacks = stack_list_make(profile->heap_part_count);
    if (!stacks || !begin_cells(profile)) {
        free(stacks);
        return error_set(error, "no memory for the list of stacks");
    }
    qsort(profile->heap_parts, profile->heap_part_count, sizeof *profile->heap_parts,
          compare_parts);
    size_t count = sum_up(profile, names, name, stacks);
    if (!profile_name_stacks(profile, stacks, count)) {
        free(stacks);
        return error_set(error, "no memory for the list of stacks");
    }
    put_in_place(profile, stacks, count);
    profile->peak.at_ns = name->is_peak_now ? recording_last_ns(profile->recording)
                                            : names->scopes.list[name->heap].entry.heap_peak_ns;
    return true;
}

bool profile_show_heap(struct profile *profile, const char *path, struct error *error) {
    struct heap_names names;
    if (!heap_names_read(&names, profile->recording))
        return error_set(error, "no memory for the list of heaps");
    const struct heap_name *name = heap_names_find(&names, path);
    bool is_ok = name ? show(profile, &names, name, error) : heap_names_refuse(&names, path, error);
    if (is_ok) profile->heap = path;
    if (is_ok) profile->heap_scope = name->scope;
    heap_names_free(&names);
    return is_ok;
}

// One thread of a slot stands for those that had it one after the other: what each of them
// allocated of a heap is not known.
bool profile_sum_heap_threads(struct profile *profile) {
    uint32_t *of_slot = calloc(CAIRN_SLOT_SHARED + 1, sizeof *of_slot);
    size_t count = 0;
    if (!of_slot) return false;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread thread = profile->threads[i];
        uint32_t *number = &of_slot[thread.slot % (CAIRN_SLOT_SHARED + 1)];
        if (*number) {
            profile->threads[*number - 1].folded_count += thread.folded_count + 1;
            continue;
        }
        struct profile_thread *kept = &profile->threads[count];
        *kept = thread;
        kept->allocations = kept->allocated_bytes = kept->failed = 0;
        kept->exit_bytes = kept->peak_bytes = 0;
        kept->exit_estimate = kept->peak_estimate = (struct estimate){0};
        kept->sharing_count = 1;
        kept->is_shared = false;
        *number = (uint32_t)++count;
    }
    profile->thread_count = count;
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        struct cell_values values;
        uint16_t slot;
        if (!heaps_cell(profile, cell, &values) || !narrow_cell_slot(profile, cell, &slot) ||
            !of_slot[slot])
            continue;
        struct profile_thread *thread = &profile->threads[of_slot[slot] - 1];
        thread->allocations += values.calls;
        thread->allocated_bytes += values.allocated_bytes;
        thread->exit_bytes = figures_add(thread->exit_bytes, values.exit_bytes);
        thread->peak_bytes = figures_add(thread->peak_bytes, values.peak_bytes);
    }
    free(of_slot);
    return true;
}

static bool is_hook(const struct profile *profile, uint32_t place) {
    uint32_t module = profile->places.list.items[place].module;
    if (module == MODULE_NONE) return false;
    return module_is_library(profile->modules.modules[module].path);
}

bool heaps_is_backing(const struct profile *profile, uint32_t node) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    while (node != TREE_ROOT && !is_hook(profile, nodes[node].place)) node = nodes[node].parent;
    return node != TREE_ROOT;
}

struct backing heaps_backing(const struct profile *profile) {
    struct backing backing = {0};
    if (!profile->heap_part_count || profile->heap) return backing;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        if (!heaps_is_backing(profile, stack->node)) continue;
        backing.peak_bytes = figures_add(backing.peak_bytes, stack->peak_bytes);
        backing.exit_bytes = figures_add(backing.exit_bytes, stack->exit_bytes);
    }
    return backing;
}
