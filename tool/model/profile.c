// SPDX-License-Identifier: Apache-2.0
#include "tool/model/profile.h"

#include <stdlib.h>
#include <string.h>

void watched_add(struct watched_blocks *sum, struct watched_blocks added) {
    sum->blocks += added.blocks;
    sum->short_lived += added.short_lived;
}

void stack_add(struct stack *stack, const struct cell_values *values) {
    stack->allocations += values->calls;
    stack->frees += values->frees;
    stack->allocated_bytes += values->allocated_bytes;
    stack->freed_bytes += values->freed_bytes;
    stack->temporary += values->temporary;
    watched_add(&stack->watched, values->watched);
    stack->slack_bytes += values->slack_bytes;
    stack->waste_bytes += values->waste_bytes;
    inherited_add(&stack->inherited, &values->inherited);
    stack->peak_bytes = figures_add(stack->peak_bytes, values->peak_bytes);
    stack->peak_blocks = figures_add(stack->peak_blocks, values->peak_blocks);
    stack->exit_bytes = figures_add(stack->exit_bytes, values->exit_bytes);
    stack->exit_blocks = figures_add(stack->exit_blocks, values->exit_blocks);
    for (int i = 0; i < ESTIMATED_COUNT; i++)
        estimate_add(&stack->estimates[i], &values->estimates[i]);
}

struct cell_values stack_values(const struct stack *stack) {
    struct cell_values values = {.calls = stack->allocations,
                                 .frees = stack->frees,
                                 .allocated_bytes = stack->allocated_bytes,
                                 .freed_bytes = stack->freed_bytes,
                                 .temporary = stack->temporary,
                                 .watched = stack->watched,
                                 .slack_bytes = stack->slack_bytes,
                                 .waste_bytes = stack->waste_bytes,
                                 .inherited = stack->inherited,
                                 .peak_bytes = stack->peak_bytes,
                                 .peak_blocks = stack->peak_blocks,
                                 .exit_bytes = stack->exit_bytes,
                                 .exit_blocks = stack->exit_blocks};
    memcpy(values.estimates, stack->estimates, sizeof values.estimates);
    return values;
}

// From the outermost frame inwards in one pass, since parents come first.
uint64_t *profile_node_ids(const struct profile *profile) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    size_t count = profile->tree.nodes.count;
    uint64_t *ids = calloc(count, sizeof *ids);
    for (size_t i = 1; ids && i < count; i++)
        ids[i] = hash_mix(ids[nodes[i].parent], place_identity(&profile->places, nodes[i].place));
    return ids;
}

bool profile_is_exact(const struct profile *profile) {
    return recording_is_exact(profile->recording);
}

bool profile_is_empty(const struct profile *profile) {
    return !profile->totals.allocations && !profile->inherited.blocks;
}

bool profile_is_sum(const struct profile *profile) {
    return profile->stack_count && !profile->stack_of_cell;
}

uint64_t profile_incomplete_count(const struct profile *profile) {
    uint64_t count = 0;
    for (size_t cut = 1; cut < CAIRN_CUT_LIMIT; cut++)
        if (cut != CAIRN_CUT_GUESSED && cut != CAIRN_CUT_SMALL && cut != CAIRN_CUT_LARGE)
            count += profile->incomplete[cut];
    return count;
}

bool profile_has_ended(const struct profile *profile) {
    uint32_t state = profile->recording->header.state;
    return state == CAIRN_STATE_ENDED || state == CAIRN_STATE_DIED;
}
