// SPDX-License-Identifier: Apache-2.0
#include "tool/model/heaps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/decode.h"
#include "tool/model/scopes.h"

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
        if (!entry.is_ready || !entry.calls) continue;
        if (has_stack && !decoder_stack(decoder, entry.cell, &node)) return false;
        profile->heap_parts[profile->heap_part_count++] = (struct heap_part){node, entry};
    }
    return true;
}

// What is wanted: a name, within its heap.
struct wanted {
    const struct scopes *scopes;
    uint32_t scope, heap;  // ids; the same of a whole heap
};

static uint32_t heap_of(const struct scopes *scopes, uint32_t id) {
    uint32_t parent = id < scopes->count ? scopes->list[id].parent : 0;
    return parent && scopes->list[parent].kind == CAIRN_SCOPE_POOL ? parent : id;
}

static bool has_part(const struct wanted *wanted, const struct heap_part *part) {
    return part->entry.scope == wanted->scope ||
           (wanted->scope == wanted->heap &&
            heap_of(wanted->scopes, part->entry.scope) == wanted->heap);
}

static bool refuse(const struct profile *profile, const struct scopes *scopes, const char *name,
                   struct error *error) {
    enum { LIST_BYTES = 512, NAME_BYTES = 128 };
    char list[LIST_BYTES] = "", safe[NAME_BYTES], wanted[NAME_BYTES];
    for (uint32_t id = 1; id < scopes->count; id++) {
        bool is_heap = false;
        for (size_t i = 0; i < profile->heap_part_count && !is_heap; i++)
            is_heap = heap_of(scopes, profile->heap_parts[i].entry.scope) == id;
        if (!is_heap) continue;
        size_t used = strlen(list);
        text_escape(safe, sizeof safe, scopes->list[id].path);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", safe);
    }
    text_escape(wanted, sizeof wanted, name);
    if (!*list)
        return error_set(error, "--heap %s: no allocator by name was recorded (--wrap)", wanted);
    return error_set(error, "--heap %s: no such heap; there are: %s", wanted, list);
}

static bool find(const struct profile *profile, const struct scopes *scopes, const char *name,
                 struct wanted *wanted) {
    *wanted = (struct wanted){.scopes = scopes};
    for (uint32_t id = 1; id < scopes->count && !wanted->scope; id++) {
        bool is_named =
            scopes->list[id].kind == CAIRN_SCOPE_POOL && !strcmp(scopes->list[id].path, name);
        if (!is_named) continue;
        *wanted = (struct wanted){scopes, id, heap_of(scopes, id)};
        bool has_any = false;
        for (size_t i = 0; i < profile->heap_part_count && !has_any; i++)
            has_any = has_part(wanted, &profile->heap_parts[i]);
        if (!has_any) wanted->scope = 0;
    }
    return wanted->scope != 0;
}

static int compare_parts(const void *a, const void *b) {
    uint32_t first = ((const struct heap_part *)a)->node;
    uint32_t second = ((const struct heap_part *)b)->node;
    return first < second ? -1 : first > second;
}

static void add(struct stack *stack, const struct cairn_heap_stack *entry, bool is_saved) {
    int64_t bytes = (int64_t)(entry->allocated_bytes - entry->freed_bytes);
    int64_t blocks = (int64_t)(entry->calls - entry->frees);
    stack->allocations += entry->calls;
    stack->frees += entry->frees;
    stack->allocated_bytes += entry->allocated_bytes;
    stack->freed_bytes += entry->freed_bytes;
    stack->exit_bytes = figures_add(stack->exit_bytes, bytes);
    stack->exit_blocks = figures_add(stack->exit_blocks, blocks);
    stack->peak_bytes = figures_add(stack->peak_bytes, is_saved ? entry->peak_bytes : bytes);
    stack->peak_blocks = figures_add(stack->peak_blocks, is_saved ? entry->peak_blocks : blocks);
}

// The stacks in the order of the tree, one of each node.
static size_t sum_up(const struct profile *profile, const struct wanted *wanted,
                     struct stack *stacks, bool is_peak_now) {
    uint32_t epoch = wanted->scopes->list[wanted->heap].entry.heap_epoch;
    size_t count = 0;
    for (size_t i = 0; i < profile->heap_part_count; i++) {
        const struct heap_part *part = &profile->heap_parts[i];
        if (!has_part(wanted, part)) continue;
        if (!count || stacks[count - 1].node != part->node) {
            stacks[count].node = part->node;
            stacks[count].number = (uint32_t)count;
            count++;
        }
        add(&stacks[count - 1], &part->entry, !is_peak_now && part->entry.epoch == epoch);
    }
    return count;
}

static bool is_peak_now(const struct profile *profile, const struct wanted *wanted) {
    const struct wanted whole = {wanted->scopes, wanted->heap, wanted->heap};
    uint64_t live = 0;
    for (size_t i = 0; i < profile->heap_part_count; i++) {
        const struct cairn_heap_stack *entry = &profile->heap_parts[i].entry;
        if (has_part(&whole, &profile->heap_parts[i]))
            live += entry->allocated_bytes - entry->freed_bytes;
    }
    return (int64_t)live > 0 && live > wanted->scopes->list[wanted->heap].entry.heap_peak_bytes;
}

// What else is known of the recording is malloc's.
static void put_in_place(struct profile *profile, struct stack *stacks, size_t count) {
    free(profile->stacks);
    profile->stacks = stacks;
    profile->stack_count = profile->built_stack_count = count;
    if (profile->stack_of_cell)
        memset(profile->stack_of_cell, 0, profile->cell_count * sizeof *profile->stack_of_cell);
    profile->thread_count = 0;
    profile->freed_at.count = 0;
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

static bool show(struct profile *profile, const struct wanted *wanted, struct error *error) {
    struct stack *stacks = stack_list_make(profile->heap_part_count);
    if (!stacks) return error_set(error, "no memory for the list of stacks");
    qsort(profile->heap_parts, profile->heap_part_count, sizeof *profile->heap_parts,
          compare_parts);
    bool is_now = is_peak_now(profile, wanted);
    size_t count = sum_up(profile, wanted, stacks, is_now);
    if (!profile_name_stacks(profile, stacks, count)) {
        free(stacks);
        return error_set(error, "no memory for the list of stacks");
    }
    put_in_place(profile, stacks, count);
    profile->peak.at_ns = is_now ? recording_last_ns(profile->recording)
                                 : wanted->scopes->list[wanted->heap].entry.heap_peak_ns;
    return true;
}

bool profile_show_heap(struct profile *profile, const char *name, struct error *error) {
    struct scopes scopes;
    struct wanted wanted;
    if (!scopes_read(&scopes, profile->recording))
        return error_set(error, "no memory for the list of heaps");
    bool is_ok = find(profile, &scopes, name, &wanted) ? show(profile, &wanted, error)
                                                       : refuse(profile, &scopes, name, error);
    if (is_ok) profile->heap = name;
    scopes_free(&scopes);
    return is_ok;
}

static bool is_hook(const struct profile *profile, uint32_t place) {
    uint32_t module = profile->places.list.items[place].module;
    if (module == MODULE_NONE) return false;
    return module_is_library(profile->modules.modules[module].path);
}

// Their hooks are among the callers.
struct backing heaps_backing(const struct profile *profile) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    struct backing backing = {0};
    if (!profile->heap_part_count || profile->heap) return backing;
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        uint32_t node = stack->node;
        while (node != TREE_ROOT && !is_hook(profile, nodes[node].place)) node = nodes[node].parent;
        if (node == TREE_ROOT) continue;
        backing.peak_bytes = figures_add(backing.peak_bytes, stack->peak_bytes);
        backing.exit_bytes = figures_add(backing.exit_bytes, stack->exit_bytes);
    }
    return backing;
}
