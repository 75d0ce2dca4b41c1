// SPDX-License-Identifier: Apache-2.0
#include "tool/model/heaps.h"
#include "tool/model/mapped.h"
#include "tool/model/peak_share.h"
#include "tool/model/profile.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/behind.h"
#include "tool/model/decode.h"
#include "tool/model/reached.h"
#include "tool/model/threads.h"

enum { HIGH_HALF_SHIFT = 32 };

// Work that is thrown away when the profile is complete.
struct builder {
    struct profile *profile;
    struct decoder decoder;
    ARRAY(struct stack) stacks;
    ARRAY(uint32_t) stack_of_node;  // index + 1; 0: none
    struct slot_bytes *slots;       // what their threads' blocks add up to
    size_t slot_limit;
    int64_t exit_bytes;  // over all cells, as known before any of them is merged
    bool has_failed;     // there was no memory to merge a cell
};

// So far the counts are numbers of samples.
static void add_samples(const struct profile *profile, size_t id, bool is_saved,
                        struct cell_values *values) {
    struct cairn_sample_cell cell;
    const struct sampled_counts counts = {(int64_t)values->calls, values->peak_blocks,
                                          values->exit_blocks};
    recording_sample_cell(profile->recording, id, &cell);
    values->is_estimated = true;
    uint64_t extra = cell.extra_calls - cell.extra_frees;
    const struct sampled_scale *scale = &profile->figures.scale;
    sampled_cell(profile->recording, scale, id, is_saved, &counts, values->estimates);
    values->freed_estimate = sampled_estimate(scale, (int64_t)values->frees,
                                              (double)(int64_t)cell.extra_frees / CAIRN_SAMPLE_ONE,
                                              cell.freed_variance, cell.frees_variance);
    values->peak_blocks =
        figures_add(values->peak_blocks, estimate_whole_blocks(is_saved ? cell.peak_extra : extra));
    values->exit_blocks = figures_add(values->exit_blocks, estimate_whole_blocks(extra));
    values->calls += (uint64_t)estimate_whole_blocks(cell.extra_calls);
    values->frees = values->calls - (uint64_t)values->exit_blocks;
}

// A cell that no thread owns began with the inherited blocks of its stack and gets no further
// calls, but for the one of events without a stack.
static void take_inherited(const struct profile *profile, size_t id, struct cell_values *values) {
    struct inherited *inherited = &values->inherited;
    if (!profile->figures.inherited_blocks) return;
    if (recording_is_inherited(profile->recording, id)) {
        *inherited = (struct inherited){.blocks = values->calls, .bytes = values->allocated_bytes};
        values->estimates[ESTIMATED_ALLOCATED] = (struct estimate){0};
    } else if (id == CAIRN_CELL_OTHER) {
        *inherited = (struct inherited){.blocks = profile->inherited_other_blocks,
                                        .bytes = profile->inherited_other_bytes};
    }
    values->calls -= inherited->blocks;
    values->allocated_bytes -= inherited->bytes;
}

static uint64_t waste_of(const struct recording *recording, size_t id,
                         const struct recorded_cell *cell) {
    struct cairn_aligned aligned;
    bool is_own = cell->aligned && recording_aligned(recording, cell->aligned - 1u, &aligned) &&
                  aligned.cell == id;
    return is_own ? aligned.waste_bytes : 0;
}

bool profile_cell(const struct profile *profile, size_t id, struct cell_values *values) {
    struct recorded_cell cell;
    if (profile->heap_cell_of) return heaps_cell(profile, id, values);
    if (!recording_cell(profile->recording, id, &cell)) return false;
    if (!cell.calls && !cell.frees && !cell.freed_bytes) return false;
    *values =
        (struct cell_values){.calls = cell.calls,
                             .frees = cell.frees,
                             .allocated_bytes = cell.allocated_bytes,
                             .freed_bytes = cell.freed_bytes,
                             .exit_bytes = (int64_t)(cell.allocated_bytes - cell.freed_bytes),
                             .exit_blocks = (int64_t)(cell.calls - cell.frees),
                             .temporary = cell.temporary,
                             .watched = (struct watched_blocks){cell.watched, cell.short_lived},
                             .slack_bytes = cell.slack_bytes,
                             .waste_bytes = waste_of(profile->recording, id, &cell)};
    bool is_saved = sampled_has_saved_peak(profile->recording, &cell, profile->peak.is_at_end);
    values->peak_bytes = is_saved ? cell.peak_bytes : values->exit_bytes;
    values->peak_blocks = is_saved ? cell.peak_blocks : values->exit_blocks;
    if (profile->sampling.is_on) add_samples(profile, id, is_saved, values);
    peak_share_take(profile, id, values);
    take_inherited(profile, id, values);
    return true;
}

bool profile_has_more(const struct profile *profile) {
    return profile->sampling.is_on || profile->figures.inherited_blocks;
}

static void find_peak(struct builder *builder) {
    struct profile *profile = builder->profile;
    const struct cairn_header *header = &profile->recording->header;
    size_t count = recording_count(profile->recording, CAIRN_SECTION_CELLS);
    int64_t left;
    for (size_t id = CAIRN_CELL_OTHER; id < count; id++)
        if (recording_cell_left(profile->recording, id, &left))
            builder->exit_bytes = figures_add(builder->exit_bytes, left);
    bool is_at_end = peak_is_at_end(profile->recording, builder->exit_bytes);
    profile->peak.is_at_end = is_at_end;
    uint64_t left_ns = (is_at_end ? recording_last_ns : recording_peak_ns)(profile->recording);
    uint64_t bytes = is_at_end ? (uint64_t)builder->exit_bytes : header->totals.peak_bytes;
    profile->peak.at_ns = recording_reached_ns(profile->recording, left_ns, bytes);
}

// Of what was inherited, the part without stacks is what the cells with stacks leave.
static void find_inherited_other(struct profile *profile) {
    const struct figures *figures = &profile->figures;
    uint64_t blocks = figures->inherited_blocks, bytes = figures->inherited_bytes;
    size_t count = recording_count(profile->recording, CAIRN_SECTION_CELLS);
    struct cell_values values;
    if (!blocks || profile->sampling.is_on) return;
    for (size_t id = CAIRN_CELL_OTHER + 1; id < count; id++) {
        if (!recording_is_inherited(profile->recording, id) || !profile_cell(profile, id, &values))
            continue;
        blocks -= values.inherited.blocks;
        bytes -= values.inherited.bytes;
    }
    if (!profile_cell(profile, CAIRN_CELL_OTHER, &values)) return;
    // a damaged recording may say anything
    if (blocks > values.calls || bytes > values.allocated_bytes) return;
    profile->inherited_other_blocks = blocks;
    profile->inherited_other_bytes = bytes;
}

static struct stack *stack_of(struct builder *builder, uint32_t node) {
    while (builder->stack_of_node.count <= node) {
        uint32_t *slot = array_push(&builder->stack_of_node);
        if (!slot) return NULL;
        *slot = 0;
    }
    uint32_t *index_plus_1 = &builder->stack_of_node.items[node];
    if (*index_plus_1) return &builder->stacks.items[*index_plus_1 - 1];
    struct stack *stack = array_push(&builder->stacks);
    if (!stack) return NULL;
    *index_plus_1 = (uint32_t)builder->stacks.count;
    *stack = (struct stack){.node = node, .number = *index_plus_1 - 1};
    struct profile *profile = builder->profile;
    if (profile_has_more(profile) && !stack_pool_give(&profile->more, stack)) return NULL;
    return stack;
}

// Returns the slot that a cell's blocks are of; CAIRN_SLOT_SHARED: none is known.
static uint16_t slot_of(const struct builder *builder, uint32_t id, const struct record *record) {
    const struct recording *recording = builder->profile->recording;
    uint16_t slot;
    bool is_known = recording_owner(recording, record->is_foreign ? record->older : id, &slot);
    return is_known ? slot : CAIRN_SLOT_SHARED;
}

// Books what a cell holds for the thread that allocated it.
static void book_slot(struct builder *builder, uint32_t id, const struct record *record,
                      const struct cell_values *values) {
    uint16_t slot = slot_of(builder, id, record);
    if (slot == CAIRN_SLOT_SHARED) return;
    struct slot_bytes *bytes = &builder->slots[slot];
    bytes->exit = figures_add(bytes->exit, values->exit_bytes);
    bytes->peak = figures_add(bytes->peak, values->peak_bytes);
    if (!values->is_estimated && !record->is_foreign) {
        bytes->cell_calls += values->calls;
        bytes->cell_bytes += values->allocated_bytes;
    }
    if (!values->is_estimated) return;
    estimate_add(&bytes->exit_estimate, &values->estimates[ESTIMATED_EXIT]);
    estimate_add(&bytes->peak_estimate, &values->estimates[ESTIMATED_PEAK]);
}

// What is still there of inherited blocks: they are in one cell, their frees in cells of others.
static void note_inherited(const struct profile *profile, uint32_t id, const struct record *record,
                           struct cell_values *values) {
    struct inherited *inherited = &values->inherited;
    if (!profile->figures.inherited_blocks) return;
    if (!inherited_is_about(profile->recording, id, record)) return;
    inherited->peak_blocks = values->peak_blocks;
    inherited->peak_bytes = values->peak_bytes;
    inherited->exit_blocks = values->exit_blocks;
    inherited->exit_bytes = values->exit_bytes;
}

// Where the cell's blocks were freed.
static bool note_freer(struct builder *builder, uint32_t id, const struct record *record) {
    uint32_t node;
    if (!record->freer || record->freer >= builder->profile->cell_count) return true;
    if (!decoder_stack(&builder->decoder, record->freer, &node)) return false;
    struct freed_at *at = array_push(&builder->profile->freed_at);
    if (at) *at = (struct freed_at){id, node};
    return at != NULL;
}

// A cell whose stack was found, on its way to where its values are added up.
struct found_cell {
    uint32_t cell, node;
};
_Static_assert(BEHIND_BLOCK_BYTES % sizeof(struct found_cell) == 0, "no cell is cut in two");

static bool merge_cell(struct builder *builder, struct found_cell found) {
    struct profile *profile = builder->profile;
    struct cell_values values;
    struct record record = {0};
    if (!profile_cell(profile, found.cell, &values)) return true;
    struct stack *stack = stack_of(builder, found.node);
    if (!stack) return false;
    decoder_record(&builder->decoder, found.cell, &record);
    note_inherited(profile, found.cell, &record, &values);
    stack_add(stack, &values);
    profile->stack_of_cell[found.cell] = (uint32_t)(stack - builder->stacks.items) + 1;
    book_slot(builder, found.cell, &record, &values);
    return true;
}

static void merge_found(void *context, const void *bytes, size_t size) {
    struct builder *builder = context;
    const struct found_cell *found = bytes, *end = found + size / sizeof *found;
    for (; found != end && !builder->has_failed; found++)
        builder->has_failed = !merge_cell(builder, *found);
}

// Cells are decoded in their order, as most build upon the one before. `merging` NULL: their values
// are not asked for.
static bool find_cells(struct builder *builder, struct behind *merging) {
    struct profile *profile = builder->profile;
    for (uint32_t id = CAIRN_CELL_OTHER; id < profile->cell_count; id++) {
        struct found_cell found = {id, TREE_ROOT};
        struct record record = {0};
        if (!recording_cell_is_used(profile->recording, id)) continue;
        if (id == CAIRN_CELL_OTHER)
            decoder_record(&builder->decoder, id, &record);
        else if (!decoder_stack_record(&builder->decoder, id, &found.node, &record))
            return false;
        if (merging) behind_put(merging, &found, sizeof found);
        if (!note_freer(builder, id, &record)) return false;
    }
    return true;
}

static bool make_room_for_cells(struct profile *profile) {
    size_t count = recording_count(profile->recording, CAIRN_SECTION_CELLS);
    if (count > UINT32_MAX) count = UINT32_MAX;
    profile->stack_of_cell = calloc(count + 1, sizeof *profile->stack_of_cell);
    profile->cell_count = profile->stack_of_cell ? count : 0;
    return profile->stack_of_cell != NULL;
}

// One thread follows records into the tree, and needs no counters; another adds those up, and needs
// of the tree the numbers of its nodes.
static bool merge_cells(struct builder *builder) {
    struct behind merging;
    if (!make_room_for_cells(builder->profile) || !behind_start(&merging, merge_found, builder))
        return false;
    bool is_ok = find_cells(builder, &merging);
    behind_end(&merging);
    return is_ok && !builder->has_failed;
}

static bool has_cuts(const struct places *places) {
    for (size_t i = 0; i < places->list.count; i++)
        if (places->list.items[i].cut) return true;
    return false;
}

// Ids and cuts.
bool profile_name_stacks(const struct profile *profile, struct stack *stacks, size_t stack_count) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    uint64_t *ids = profile_node_ids(profile);
    bool are_cut = has_cuts(&profile->places);
    if (!ids) return false;
    for (size_t i = 0; i < stack_count; i++) {
        struct stack *stack = &stacks[i];
        stack->id = ids[stack->node];
        if (stack->node == TREE_ROOT || !are_cut) continue;
        uint32_t outermost = tree_ancestor(&profile->tree, stack->node, 1);
        stack->cut = profile->places.list.items[nodes[outermost].place].cut;
    }
    free(ids);
    return true;
}

// Blocks below --min-size have no stack.
static void exclude_small(const struct profile *profile, struct stack *stacks, size_t stack_count) {
    uint64_t least = profile->sampling.min_bytes;
    for (size_t i = 0; least && i < stack_count; i++)
        for (int which = 0; stacks[i].more && which < ESTIMATED_COUNT; which++)
            if (stacks[i].node != TREE_ROOT && !stacks[i].cut)
                sampled_exclude_below(&profile->figures.scale, least,
                                      &stacks[i].more->estimates[which]);
}

// Takes a cell's part off what its stack and its thread held at the peak.
static void lower_cell(struct builder *builder, uint32_t id, struct stack *stack) {
    struct cell_values values;
    struct record record = {0};
    if (!profile_cell(builder->profile, id, &values)) return;
    const struct estimate *over = &values.estimates[ESTIMATED_PEAK];
    struct estimate *peak = &stack->more->estimates[ESTIMATED_PEAK];
    int64_t bytes = -(int64_t)over->bytes_over, blocks = -(int64_t)over->blocks_over;
    stack->peak_bytes = figures_add(stack->peak_bytes, bytes);
    stack->peak_blocks = figures_add(stack->peak_blocks, blocks);
    peak->bytes_over += over->bytes_over;
    peak->blocks_over += over->blocks_over;
    decoder_record(&builder->decoder, id, &record);
    uint16_t slot = slot_of(builder, id, &record);
    if (slot == CAIRN_SLOT_SHARED) return;
    builder->slots[slot].peak = figures_add(builder->slots[slot].peak, bytes);
    builder->slots[slot].peak_estimate.bytes_over += over->bytes_over;
    builder->slots[slot].peak_estimate.blocks_over += over->blocks_over;
}

static bool lower_peak(struct builder *builder) {
    struct profile *profile = builder->profile;
    if (!peak_share_make(profile)) return false;
    for (uint32_t id = 0; profile->peak_over && id < profile->cell_count; id++)
        if (profile->stack_of_cell[id])
            lower_cell(builder, id, &profile->stacks[profile->stack_of_cell[id] - 1]);
    return true;
}

// Calls and their bytes are counted beside the samples.
static void take_exact_totals(struct profile *profile) {
    const struct figures *figures = &profile->figures;
    struct profile_totals *totals = &profile->totals;
    totals->allocations = figures->allocations;
    totals->allocated_bytes = figures->allocated_bytes;
    totals->frees =
        figures_freed(figures->allocations + figures->inherited_blocks, profile->exit_blocks);
    totals->freed_bytes =
        figures_freed(figures->allocated_bytes + figures->inherited_bytes, profile->exit_bytes);
}

static void sum_up(struct profile *profile, size_t slot_count) {
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        profile->totals.allocations += stack->allocations;
        profile->totals.frees += stack->frees;
        profile->totals.allocated_bytes += stack->allocated_bytes;
        profile->totals.freed_bytes += stack->freed_bytes;
        profile->totals.temporary += stack->temporary;
        watched_add(&profile->totals.watched, stack->watched);
        profile->totals.slack_bytes += stack->slack_bytes;
        profile->totals.waste_bytes += stack->waste_bytes;
        profile->peak.bytes = figures_add(profile->peak.bytes, stack->peak_bytes);
        profile->peak.blocks = figures_add(profile->peak.blocks, stack->peak_blocks);
        profile->exit_bytes = figures_add(profile->exit_bytes, stack->exit_bytes);
        profile->exit_blocks = figures_add(profile->exit_blocks, stack->exit_blocks);
        if (stack->cut) profile->incomplete[cut_kind(stack->cut)]++;
        for (int which = 0; stack->more && which < ESTIMATED_COUNT; which++)
            estimate_add(&profile->estimates[which], &stack->more->estimates[which]);
    }
    if (profile->sampling.is_on) {
        take_exact_totals(profile);
        sampled_add_unseen(&profile->figures.scale, profile->estimates);
        struct estimate *peak = &profile->estimates[ESTIMATED_PEAK];
        peak->bytes_least = profile->figures.peak_estimate.bytes_least;
        peak->blocks_least = profile->figures.peak_estimate.blocks_least;
    }
    const struct cairn_totals *totals = &profile->recording->header.totals;
    uint64_t counted = totals->peak_bytes;
    if (profile->peak.is_at_end && (uint64_t)profile->exit_bytes > counted)
        counted = (uint64_t)profile->exit_bytes;
    uint64_t over = (uint64_t)profile->estimates[ESTIMATED_PEAK].bytes_over;
    uint64_t sum = (uint64_t)profile->peak.bytes + over;
    profile->peak.error_bytes = sum > counted ? sum - counted : counted - sum;
    if (totals->is_threaded) profile->peak.error_bytes += 2 * slot_count * totals->batch_bytes;
    if (totals->is_threaded)
        profile->peak.from_ns = recording_near_ns(profile->recording, profile->peak.at_ns, counted,
                                                  profile->peak.error_bytes);
}

static void read_reachability(struct profile *profile) {
    struct reachability *reachability = &profile->reachability;
    if (!recording_reachability(profile->recording, &reachability->sums)) return;
    reachability->known_count = reachability->sums.is_known != 0;
    reachability->unknown_count = !reachability->known_count;
}

static bool start_decoder(struct builder *builder) {
    struct profile *profile = builder->profile;
    return tree_start(&profile->tree) &&
           decoder_start(&builder->decoder, profile->recording, &profile->modules, &profile->places,
                         &profile->tree);
}

// Stacks that are not those of the heap's cells.
static bool find_others(struct builder *builder) {
    struct profile *profile = builder->profile;
    return mapped_build(profile, &builder->decoder) && heaps_build(profile, &builder->decoder) &&
           overruns_read(&profile->overruns, profile->recording, &builder->decoder);
}

static bool build(struct builder *builder) {
    struct profile *profile = builder->profile;
    size_t slot_count = 0;
    builder->slot_limit = threads_slot_limit(profile->recording);
    builder->slots = calloc(builder->slot_limit, sizeof *builder->slots);
    if (!builder->slots || !start_decoder(builder)) return false;
    find_inherited_other(profile);
    find_peak(builder);
    if (!merge_cells(builder) || !find_others(builder) ||
        !profile_name_stacks(profile, builder->stacks.items, builder->stacks.count) ||
        !profile_name_stacks(profile, profile->mapped.stacks, profile->mapped.stack_count))
        return false;
    profile->region_of_cell = builder->decoder.cell_regions;
    builder->decoder.cell_regions = NULL;
    exclude_small(profile, builder->stacks.items, builder->stacks.count);
    profile->stacks = builder->stacks.items;
    profile->stack_count = profile->built_stack_count = builder->stacks.count;
    builder->stacks.items = NULL;
    for (size_t i = 0; profile_has_more(profile) && i < profile->stack_count; i++)
        inherited_add(&profile->inherited, &stack_more(&profile->stacks[i])->inherited);
    read_reachability(profile);
    if (!lower_peak(builder)) return false;
    if (!threads_build(profile, builder->slots, builder->slot_limit, &slot_count)) return false;
    sum_up(profile, slot_count);
    return true;
}

static bool build_places(struct builder *builder) {
    return start_decoder(builder) && make_room_for_cells(builder->profile) &&
           find_cells(builder, NULL) && find_others(builder);
}

static bool build_by(bool (*make)(struct builder *builder), struct recording *recording,
                     struct profile *profile, struct error *error) {
    memset(profile, 0, sizeof *profile);
    profile->recording = recording;
    profile->figures = figures_of(recording);
    if (!recording_sampling(recording, &profile->sampling))
        memset(&profile->sampling, 0, sizeof profile->sampling);
    if (!module_map_build(recording, &profile->modules, error)) {
        profile_free(profile);
        return false;
    }
    places_start(&profile->places, &profile->modules);
    struct builder builder = {.profile = profile};
    bool is_built = make(&builder);
    decoder_free(&builder.decoder);
    array_free(&builder.stacks);
    array_free(&builder.stack_of_node);
    free(builder.slots);
    if (is_built) return true;
    profile_free(profile);
    return error_set(error, "no memory for the stacks of this recording");
}

bool profile_build(struct recording *recording, struct profile *profile, struct error *error) {
    return build_by(build, recording, profile, error);
}

bool profile_build_places(struct recording *recording, struct profile *profile,
                          struct error *error) {
    return build_by(build_places, recording, profile, error);
}

void profile_free(struct profile *profile) {
    places_free(&profile->places);
    tree_free(&profile->tree);
    module_map_free(&profile->modules);
    free(profile->stacks);
    stack_pool_free(&profile->more);
    free(profile->stack_of_cell);
    array_free(&profile->freed_at);
    array_free(&profile->joined);
    free(profile->joined_numbers);
    overruns_free(&profile->overruns);
    mapped_free(&profile->mapped);
    free(profile->heap_parts);
    if (profile->heap_names) heap_names_free(profile->heap_names);
    free(profile->heap_names);
    free(profile->heap_cell_of);
    free(profile->heap_cells);
    free(profile->region_of_cell);
    free(profile->peak_over);
    free(profile->threads);
    memset(profile, 0, sizeof *profile);
}
