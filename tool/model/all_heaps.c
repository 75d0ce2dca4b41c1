// SPDX-License-Identifier: Apache-2.0
#include "tool/model/all_heaps.h"

#include <stdlib.h>

#include "tool/model/heaps.h"

const char *profile_heap_of(const struct profile *profile, const struct stack *stack) {
    size_t scope = (size_t)stack->heap - HEAP_NAMES;
    if (profile->heap || stack->heap == HEAP_OF_PROFILE) return profile->heap;
    if (stack->heap == HEAP_MALLOC) return "malloc";
    if (stack->heap == HEAP_BACKING) return "malloc (backing)";
    const struct scopes *scopes = &profile->heap_names->scopes;
    return scope < scopes->count ? scopes->list[scope].path : NULL;
}

uint16_t all_heaps_of_malloc(const struct profile *profile, uint32_t node) {
    return heaps_is_backing(profile, node) ? HEAP_BACKING : HEAP_MALLOC;
}

// By stack, then by name.
static int compare_parts(const void *a, const void *b) {
    const struct heap_part *first = a, *second = b;
    if (first->node != second->node) return first->node < second->node ? -1 : 1;
    return (first->entry.scope > second->entry.scope) - (first->entry.scope < second->entry.scope);
}

static const struct heap_name *name_of(const struct heap_names *names, uint32_t scope) {
    for (size_t i = 0; i < names->list.count; i++)
        if (names->list.items[i].scope == scope) return &names->list.items[i];
    return NULL;
}

// How many of them there are.
static size_t add_parts(const struct profile *profile, struct stack *stacks) {
    size_t count = 0;
    for (size_t i = 0; i < profile->heap_part_count; i++) {
        const struct heap_part *part = &profile->heap_parts[i];
        const struct heap_name *name = name_of(profile->heap_names, part->entry.scope);
        if (!name) continue;
        if (!count || compare_parts(part, part - 1) != 0) {
            stacks[count].node = part->node;
            stacks[count].number = (uint32_t)(profile->stack_count + count);
            stacks[count++].heap = (uint16_t)(HEAP_NAMES + name->scope);
        }
        struct cell_values values = heap_name_values(profile->heap_names, name, &part->entry);
        stack_add(&stacks[count - 1], &values);
    }
    return count;
}

static bool append(struct profile *profile) {
    struct stack *stacks = stack_list_make(profile->stack_count + profile->heap_part_count);
    if (!stacks) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        stack_copy(&stacks[i], &profile->stacks[i]);
        stacks[i].heap = all_heaps_of_malloc(profile, stacks[i].node);
    }
    struct stack *added = &stacks[profile->stack_count];
    size_t count = add_parts(profile, added);
    if (!profile_name_stacks(profile, added, count)) {
        free(stacks);
        return false;
    }
    free(profile->stacks);
    profile->stacks = stacks;
    profile->stack_count += count;
    profile->built_stack_count = profile->stack_count;
    return true;
}

bool profile_show_all_heaps(struct profile *profile, struct error *error) {
    struct heap_names *names = calloc(1, sizeof *names);
    bool is_ok = names && heap_names_read(names, profile->recording);
    if (is_ok && names->list.count) {
        profile->heap_names = names;
        qsort(profile->heap_parts, profile->heap_part_count, sizeof *profile->heap_parts,
              compare_parts);
        return append(profile) || error_set(error, "no memory for the list of stacks");
    }
    if (is_ok) heap_names_free(names);
    free(names);
    return is_ok || error_set(error, "no memory for the list of heaps");
}
