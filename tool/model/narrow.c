// SPDX-License-Identifier: Apache-2.0
#include "tool/model/narrow.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/decode.h"
#include "tool/model/shape.h"

enum { SLOT_LIMIT = CAIRN_SLOT_SHARED + 1, SLOT_KEPT = 1, SLOT_LEFT_OUT = 2 };

// What becomes of the threads of each slot: bits SLOT_KEPT and SLOT_LEFT_OUT.
static uint8_t *sort_slots(const struct profile *profile, const bool *are_kept, bool *is_estimate) {
    uint8_t *slots = calloc(SLOT_LIMIT, 1);
    *is_estimate = false;
    for (size_t i = 0; slots && i < profile->thread_count; i++) {
        uint8_t *slot = &slots[profile->threads[i].slot % SLOT_LIMIT];
        *slot |= are_kept[i] ? SLOT_KEPT : SLOT_LEFT_OUT;
        if (*slot == (SLOT_KEPT | SLOT_LEFT_OUT)) *is_estimate = true;
    }
    return slots;
}

bool narrow_cell_slot(const struct profile *profile, size_t cell, uint16_t *slot) {
    const struct decoder decoder = {.recording = profile->recording};
    struct record record;
    bool is_foreign = decoder_record(&decoder, (uint32_t)cell, &record) && record.is_foreign;
    return recording_owner(profile->recording, is_foreign ? record.older : cell, slot);
}

// The stacks' values from the cells that are left.
static void add_up_again(struct profile *profile) {
    for (size_t i = 0; i < profile->stack_count; i++) stack_clear(&profile->stacks[i]);
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        uint32_t stack = profile->stack_of_cell[cell];
        struct cell_values values;
        if (stack && profile_cell(profile, cell, &values))
            stack_add(&profile->stacks[stack - 1], &values);
    }
}

bool profile_keep_threads(struct profile *profile, const bool *are_kept, bool *is_estimate) {
    uint8_t *slots = sort_slots(profile, are_kept, is_estimate);
    if (!slots) return false;
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        uint16_t slot;
        if (!profile->stack_of_cell[cell] || !narrow_cell_slot(profile, cell, &slot) ||
            !(slots[slot] & SLOT_KEPT))
            profile->stack_of_cell[cell] = 0;
    }
    free(slots);
    add_up_again(profile);
    return true;
}

void profile_keep_regions(struct profile *profile, const bool *are_kept, size_t count) {
    for (size_t cell = 0; cell < profile->cell_count; cell++) {
        uint32_t region = profile->region_of_cell[cell];
        if (region >= count || !are_kept[region]) profile->stack_of_cell[cell] = 0;
    }
    add_up_again(profile);
}

static void add_lost(struct stack *stack, const struct cairn_lost *lost) {
    stack->exit_bytes =
        figures_add(stack->exit_bytes, (int64_t)(lost->direct_bytes + lost->below_bytes));
    stack->exit_blocks =
        figures_add(stack->exit_blocks, (int64_t)(lost->direct_blocks + lost->below_blocks));
}

void profile_keep_lost(struct profile *profile) {
    struct cairn_lost lost;
    profile_forget_exit(profile);
    profile->is_of_lost = true;
    for (size_t i = 0; recording_lost_cell(profile->recording, i, &lost); i++) {
        uint32_t stack = lost.cell < profile->cell_count ? profile->stack_of_cell[lost.cell] : 0;
        if (stack && stack <= profile->stack_count) add_lost(&profile->stacks[stack - 1], &lost);
        profile->exit_bytes =
            figures_add(profile->exit_bytes, (int64_t)(lost.direct_bytes + lost.below_bytes));
        profile->exit_blocks =
            figures_add(profile->exit_blocks, (int64_t)(lost.direct_blocks + lost.below_blocks));
    }
}

static void keep_estimates(struct estimate *estimates, bool is_living) {
    if (is_living) estimates[ESTIMATED_ALLOCATED] = estimates[ESTIMATED_EXIT];
    estimates[ESTIMATED_PEAK] = (struct estimate){0};
    if (!is_living) estimates[ESTIMATED_EXIT] = (struct estimate){0};
}

void profile_keep_lifespan(struct profile *profile, enum lifespan lifespan) {
    for (size_t i = 0; lifespan != LIFESPAN_ANY && i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        bool is_living = lifespan == LIFESPAN_LIVING;
        stack->allocations = is_living ? (uint64_t)stack->exit_blocks : stack->frees;
        stack->allocated_bytes = is_living ? (uint64_t)stack->exit_bytes : stack->freed_bytes;
        stack->peak_bytes = stack->peak_blocks = 0;
        stack->slack_bytes = stack->waste_bytes = 0;
        if (is_living) stack->temporary = 0;
        stack->watched = (struct watched_blocks){0};
        if (is_living) stack->frees = stack->freed_bytes = 0;
        if (!is_living) stack->exit_bytes = stack->exit_blocks = 0;
        if (stack->more) keep_estimates(stack->more->estimates, is_living);
    }
}

static uint64_t count_young(const struct shape_ages *ages, uint64_t short_ns) {
    const uint64_t ms_ns = 1000000;
    uint64_t young = 0;
    // bucket b is below 2^b milliseconds
    for (unsigned bucket = 0; bucket < CAIRN_AGE_BUCKETS; bucket++)
        if (ms_ns << bucket <= short_ns) young += ages->ms[bucket];
    return young;
}

bool profile_keep_short(struct profile *profile, uint64_t short_ns, struct error *error) {
    struct shape shape;
    bool has_ages = !profile->stack_count;
    if (!shape_build(&shape, profile, error)) return false;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct stack *stack = &profile->stacks[i];
        struct shape_ages ages;
        uint64_t young = 0, freed = stack->frees, bytes = stack->freed_bytes;
        if (shape_ages(&shape, stack->number, &ages)) {
            has_ages = true;
            young = count_young(&ages, short_ns);
        }
        if (young > freed) young = freed;
        stack_clear(stack);
        stack->allocations = stack->frees = young;
        if (young) bytes = (uint64_t)((double)bytes * (double)young / (double)freed);
        stack->allocated_bytes = stack->freed_bytes = young ? bytes : 0;
    }
    shape_free(&shape);
    return has_ages || error_set(error, "how long blocks lived was not recorded: cairn run --ages");
}

void profile_forget_exit(struct profile *profile) {
    for (size_t i = 0; i < profile->stack_count; i++)
        profile->stacks[i].exit_bytes = profile->stacks[i].exit_blocks = 0;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (profile->stacks[i].more)
            profile->stacks[i].more->estimates[ESTIMATED_EXIT] = (struct estimate){0};
    profile->exit_bytes = profile->exit_blocks = 0;
    profile->estimates[ESTIMATED_EXIT] = (struct estimate){0};
}

void profile_keep_stacks(struct profile *profile, const bool *are_kept) {
    size_t kept = 0;
    bool are_as_built = profile->stack_count == profile->built_stack_count;
    for (size_t cell = 0; are_as_built && cell < profile->cell_count; cell++) {
        uint32_t stack = profile->stack_of_cell[cell];
        if (stack && !are_kept[stack - 1]) profile->stack_of_cell[cell] = 0;
    }
    for (size_t i = 0; i < profile->stack_count; i++)
        if (are_kept[i]) profile->stacks[kept++] = profile->stacks[i];
    profile->stack_count = kept;
}

bool profile_keep_largest(struct profile *profile, enum measure by, size_t top, int64_t least) {
    size_t count;
    uint32_t *ranking = measure_rank(by, profile, &count);
    bool *are_kept = calloc(profile->stack_count + 1, sizeof *are_kept);
    bool is_ok = ranking && are_kept;
    if (top && top < count) count = top;
    for (size_t i = 0; is_ok && i < count; i++)
        are_kept[ranking[i]] = measure_stack(by, &profile->stacks[ranking[i]]).value >= least;
    if (is_ok) profile_keep_stacks(profile, are_kept);
    free(ranking);
    free(are_kept);
    return is_ok;
}

void profile_sum_up(struct profile *profile) {
    struct stack_more more = {0};
    struct stack sum = {.more = &more};
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        const struct cell_values values = stack_values(stack);
        stack_add(&sum, &values);
    }
    profile->totals = (struct profile_totals){.allocations = sum.allocations,
                                              .frees = sum.frees,
                                              .allocated_bytes = sum.allocated_bytes,
                                              .freed_bytes = sum.freed_bytes,
                                              .temporary = sum.temporary,
                                              .watched = sum.watched,
                                              .slack_bytes = sum.slack_bytes,
                                              .waste_bytes = sum.waste_bytes};
    profile->inherited = more.inherited;
    profile->peak.bytes = sum.peak_bytes;
    profile->peak.blocks = sum.peak_blocks;
    profile->exit_bytes = sum.exit_bytes;
    profile->exit_blocks = sum.exit_blocks;
    memcpy(profile->estimates, more.estimates, sizeof profile->estimates);
}

// The node of the `depth` innermost calls of `node`, called by nobody.
static bool cut_stack(struct tree *tree, size_t depth, uint32_t *node) {
    ARRAY(uint32_t) places = {0};
    bool is_ok = true;
    for (uint32_t at = *node; is_ok && places.count < depth; at = tree->nodes.items[at].parent) {
        uint32_t *place = array_push(&places);
        is_ok = place != NULL;
        if (place) *place = tree->nodes.items[at].place;
    }
    *node = TREE_ROOT;
    while (is_ok && places.count)
        is_ok = tree_child(tree, *node, places.items[--places.count], node);
    array_free(&places);
    return is_ok;
}

bool profile_cut_stacks(struct profile *profile, size_t depth) {
    for (size_t i = 0; i < profile->stack_count; i++) {
        uint32_t *node = &profile->stacks[i].node;
        if (profile->tree.nodes.items[*node].depth <= depth) continue;
        if (!cut_stack(&profile->tree, depth, node)) return false;
    }
    return true;
}
