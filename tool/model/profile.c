// SPDX-License-Identifier: Apache-2.0
#include "tool/model/profile.h"

#include <stdlib.h>
#include <string.h>

#include "format/sample.h"
#include "tool/model/figures.h"

void inherited_add(struct inherited *sum, const struct inherited *added) {
    sum->blocks += added->blocks;
    sum->bytes += added->bytes;
    sum->peak_blocks = figures_add(sum->peak_blocks, added->peak_blocks);
    sum->peak_bytes = figures_add(sum->peak_bytes, added->peak_bytes);
    sum->exit_blocks = figures_add(sum->exit_blocks, added->exit_blocks);
    sum->exit_bytes = figures_add(sum->exit_bytes, added->exit_bytes);
}

bool inherited_is_about(const struct recording *recording, size_t cell,
                        const struct record *record) {
    return recording_is_inherited(recording, record->is_foreign ? record->older : cell);
}

// Blocks that a cell holds; of samples, those they stand for.
static int64_t held_blocks(const struct recording *recording, size_t cell,
                           const struct recorded_cell *from) {
    struct cairn_sample_cell sums;
    recording_sample_cell(recording, cell, &sums);
    return figures_add((int64_t)(from->calls - from->frees),
                       estimate_whole_blocks(sums.extra_calls - sums.extra_frees));
}

struct inherited inherited_of(const struct recording *recording) {
    const struct figures figures = figures_of(recording);
    const struct decoder decoder = {.recording = (struct recording *)recording};
    struct inherited sum = {.blocks = figures.inherited_blocks, .bytes = figures.inherited_bytes};
    struct recorded_cell cell;
    if (!sum.blocks) return sum;
    for (uint32_t id = CAIRN_CELL_OTHER + 1; recording_cell(recording, id, &cell); id++) {
        struct record record;
        if (!decoder_record(&decoder, id, &record) || !inherited_is_about(recording, id, &record))
            continue;
        sum.exit_blocks = figures_add(sum.exit_blocks, held_blocks(recording, id, &cell));
        sum.exit_bytes =
            figures_add(sum.exit_bytes, (int64_t)(cell.allocated_bytes - cell.freed_bytes));
    }
    return sum;
}

// The stack of a cell. TREE_ROOT if it has none.
static bool node_of(struct recording *recording, struct decoder *decoder, uint32_t cell,
                    uint32_t *node) {
    *node = TREE_ROOT;
    if (cell <= CAIRN_CELL_OTHER || cell >= recording_count(recording, CAIRN_SECTION_CELLS))
        return true;
    return decoder_stack(decoder, cell, node);
}

bool overruns_read(struct overruns *overruns, struct recording *recording,
                   struct decoder *decoder) {
    struct overrun found = {0};
    if (!recording_guard(recording, &overruns->guard)) return true;
    for (size_t i = 0; i < CAIRN_OVERRUN_LIMIT; i++) {
        if (!recording_overrun(recording, i, &found.entry)) break;
        if (!found.entry.found_at) continue;
        struct overrun *overrun = array_push(&overruns->list);
        if (!overrun || !node_of(recording, decoder, found.entry.cell, &found.node) ||
            !node_of(recording, decoder, found.entry.found_cell, &found.found_node))
            return false;
        *overrun = found;
    }
    return true;
}

void overruns_free(struct overruns *overruns) {
    array_free(&overruns->list);
    overruns->guard = (struct cairn_guard){0};
}

int64_t overrun_before(const struct overrun *overrun) {
    return -(int64_t)overrun->entry.before.farthest;
}

int64_t overrun_behind(const struct overrun *overrun) {
    return (int64_t)(overrun->entry.size + overrun->entry.behind.nearest - 1);
}

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
    stack->peak_bytes = figures_add(stack->peak_bytes, values->peak_bytes);
    stack->peak_blocks = figures_add(stack->peak_blocks, values->peak_blocks);
    stack->exit_bytes = figures_add(stack->exit_bytes, values->exit_bytes);
    stack->exit_blocks = figures_add(stack->exit_blocks, values->exit_blocks);
    stack->is_estimated |= values->is_estimated;
    if (!stack->more) return;
    inherited_add(&stack->more->inherited, &values->inherited);
    for (int i = 0; values->is_estimated && i < ESTIMATED_COUNT; i++)
        estimate_add(&stack->more->estimates[i], &values->estimates[i]);
}

const struct stack_more *stack_more(const struct stack *stack) {
    static const struct stack_more nothing;
    return stack->more ? stack->more : &nothing;
}

struct stack *stack_list_make(size_t count) {
    struct stack *list = calloc(count + 1, sizeof *list + sizeof *list->more);
    struct stack_more *more = list ? (struct stack_more *)&list[count + 1] : NULL;
    for (size_t i = 0; list && i < count; i++) list[i].more = &more[i];
    return list;
}

void stack_copy(struct stack *to, const struct stack *from) {
    struct stack_more *more = to->more;
    if (more) *more = *stack_more(from);
    *to = *from;
    to->more = more;
}

void stack_clear(struct stack *stack) {
    if (stack->more) *stack->more = (struct stack_more){0};
    *stack = (struct stack){.id = stack->id,
                            .node = stack->node,
                            .cut = stack->cut,
                            .number = stack->number,
                            .more = stack->more};
}

bool stack_pool_give(struct stack_pool *pool, struct stack *stack) {
    enum { CHUNK = 512 };
    if (stack->more) return true;
    if (!pool->chunks.count || pool->used == CHUNK) {
        struct stack_more *chunk = calloc(CHUNK, sizeof *chunk);
        struct stack_more **slot = chunk ? array_push(&pool->chunks) : NULL;
        if (!slot) {
            free(chunk);
            return false;
        }
        *slot = chunk;
        pool->used = 0;
    }
    stack->more = &pool->chunks.items[pool->chunks.count - 1][pool->used++];
    return true;
}

void stack_pool_free(struct stack_pool *pool) {
    for (size_t i = 0; i < pool->chunks.count; i++) free(pool->chunks.items[i]);
    array_free(&pool->chunks);
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
                                 .inherited = stack_more(stack)->inherited,
                                 .peak_bytes = stack->peak_bytes,
                                 .peak_blocks = stack->peak_blocks,
                                 .exit_bytes = stack->exit_bytes,
                                 .exit_blocks = stack->exit_blocks,
                                 .is_estimated = stack->is_estimated};
    if (stack->more) memcpy(values.estimates, stack->more->estimates, sizeof values.estimates);
    return values;
}

// From the outermost frame inwards in one pass, since parents come first.
uint64_t *profile_node_ids(const struct profile *profile) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    size_t count = profile->tree.nodes.count, place_count = profile->places.list.count;
    uint64_t *ids = calloc(count, sizeof *ids);
    uint64_t *of_places = calloc(place_count + 1, sizeof *of_places);
    for (size_t i = 0; of_places && i < place_count; i++)
        of_places[i] = place_identity(&profile->places, (uint32_t)i);
    for (size_t i = 1; ids && of_places && i < count; i++)
        ids[i] = hash_mix(ids[nodes[i].parent], of_places[nodes[i].place]);
    if (!of_places) free(ids);
    bool has_memory = of_places != NULL;
    free(of_places);
    return has_memory ? ids : NULL;
}

bool profile_is_exact(const struct profile *profile) {
    return recording_is_exact(profile->recording);
}

uint32_t *profile_stack_indexes(const struct profile *profile) {
    uint32_t *index = calloc(profile->built_stack_count + 1, sizeof *index);
    for (size_t i = 0; index && i < profile->stack_count; i++)
        if (profile->stacks[i].number < profile->built_stack_count)
            index[profile->stacks[i].number] = (uint32_t)i + 1;
    return index;
}

size_t profile_stack_of(const struct profile *profile, uint32_t cell) {
    uint32_t number = cell < profile->cell_count ? profile->stack_of_cell[cell] : 0;
    return number && number <= profile->stack_count ? number - 1 : profile->stack_count;
}

bool profile_is_empty(const struct profile *profile) {
    return !profile->totals.allocations && !profile->inherited.blocks;
}

bool profile_lacks_older(const struct profile *profile) {
    const struct cairn_header *header = profile->recording ? &profile->recording->header : NULL;
    return header && header->is_attached && !header->has_census;
}

bool profile_has_frees(const struct profile *profile) {
    return !profile->recording || !profile->recording->header.has_no_frees;
}

bool profile_has_calls(const struct profile *profile) {
    return !profile->recording || !profile->recording->header.has_no_calls;
}

bool profile_has_blocks(const struct profile *profile) {
    return !profile->recording || !profile->recording->header.has_no_blocks;
}

bool profile_is_sum(const struct profile *profile) {
    return profile->stack_count && !profile->stack_of_cell;
}

uint64_t profile_incomplete_count(const struct profile *profile) {
    uint64_t count = 0;
    for (size_t cut = 1; cut < CAIRN_CUT_LIMIT; cut++)
        if (cut != CAIRN_CUT_GUESSED && cut != CAIRN_CUT_SMALL && cut != CAIRN_CUT_LARGE &&
            cut != CAIRN_CUT_MAX_DEPTH)
            count += profile->incomplete[cut];
    return count;
}

bool profile_has_ended(const struct profile *profile) {
    uint32_t state = profile->recording->header.state;
    return state == CAIRN_STATE_ENDED || state == CAIRN_STATE_DIED;
}
