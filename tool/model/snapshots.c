// SPDX-License-Identifier: Apache-2.0
// A cell's value at a moment is that of the saved entry that covers the snapshot's epoch; without
// one it is what the cell holds now, if it has not changed since, and else nothing
// (docs/reference/format.md).
#include "tool/model/snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/decode.h"
#include "tool/model/heaps.h"

enum { GENERATIONS_MAX = CAIRN_SNAPSHOT_LIMIT };

struct snapshot_value {
    struct cairn_value value;
    size_t index;  // in VALUES
};

struct snapshot_cell {
    struct live_at now;
    uint32_t stack;                     // number + 1; 0: not used
    uint32_t epoch;                     // of its last change
    uint32_t origin;                    // the cell whose stack and generation it has
    uint32_t first_value, value_count;  // in `values`
};

static void held_add(struct live_at *sum, struct live_at added) {
    sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)added.bytes);
    sum->blocks = (int64_t)((uint64_t)sum->blocks + (uint64_t)added.blocks);
}

static bool read_list(struct snapshots *snapshots) {
    const struct recording *recording = snapshots->profile->recording;
    size_t count = recording_count(recording, CAIRN_SECTION_SNAPSHOTS);
    if (count > CAIRN_SNAPSHOT_LIMIT) count = CAIRN_SNAPSHOT_LIMIT;
    snapshots->list = calloc(count + 1, sizeof *snapshots->list);
    bool has_values = !recording_is_sampled(recording) || recording_has_sample_values(recording);
    if (snapshots->is_of_heaps) has_values = recording_knows_heap_blocks(recording);
    if (!snapshots->list) return false;
    for (size_t i = 0; i < count; i++) {
        struct cairn_snapshot from;
        recording_snapshot(recording, i, &from);
        if (from.reason == CAIRN_SNAPSHOT_NONE || from.reason >= CAIRN_SNAPSHOT_REASONS) continue;
        struct snapshot *snapshot = &snapshots->list[snapshots->count++];
        *snapshot = (struct snapshot){.reason = (enum cairn_snapshot_reason)from.reason,
                                      .generation = from.generation,
                                      .at_ns = from.time_ns,
                                      .live_bytes = from.live_bytes,
                                      .live_blocks = from.live_blocks,
                                      .allocated_bytes = from.allocated_bytes,
                                      .allocations = from.allocations,
                                      .missing_values = from.missing_values,
                                      .heap = from.heap,
                                      .has_values = !from.is_inherited && has_values,
                                      .epoch = from.epoch};
        // a coarse clock may lag behind the one that the recording's start was read from
        if ((int64_t)snapshot->at_ns < 0) snapshot->at_ns = 0;
        memcpy(snapshot->label, from.label, sizeof snapshot->label);
    }
    return true;
}

// Blocks that a foreign cell frees are of the generation of the cell that counted them. Few
// views ask.
static uint32_t generation_of(const struct profile *profile, uint32_t cell) {
    const struct decoder decoder = {.recording = profile->recording};
    struct recorded_cell from;
    struct record record;
    if (decoder_record(&decoder, cell, &record) && record.is_foreign) cell = record.older;
    return recording_cell(profile->recording, cell, &from) ? from.generation : 0;
}

// Entries of HEAP_STACKS in the place of cells.
static bool read_heap_stacks(struct snapshots *snapshots) {
    const struct profile *profile = snapshots->profile;
    size_t count = recording_count(profile->recording, CAIRN_SECTION_HEAP_STACKS);
    snapshots->cell_count = count < CAIRN_HEAP_STACK_LIMIT ? count : CAIRN_HEAP_STACK_LIMIT;
    snapshots->cells = calloc(snapshots->cell_count + 1, sizeof *snapshots->cells);
    for (size_t i = 0; snapshots->cells && i < profile->heap_part_count; i++) {
        const struct heap_part *part = &profile->heap_parts[i];
        struct snapshot_cell *cell = &snapshots->cells[part->number];
        const struct cell_values values = heap_stack_values(&part->entry);
        if (part->entry.cell >= profile->cell_count || (profile->heap && !part->is_shown)) continue;
        // of all heaps nobody asks for stacks
        cell->stack = profile->heap ? profile->stack_of_cell[part->entry.cell] : 1;
        cell->now = (struct live_at){values.exit_bytes, values.exit_blocks};
        cell->epoch = part->entry.snapshot_epoch;
        cell->origin = part->entry.cell;
    }
    return snapshots->cells != NULL;
}

// What a cell holds at the end; of one that has a stack.
static bool held_now(const struct profile *profile, size_t id, const struct recorded_cell *cell,
                     struct live_at *now) {
    struct cell_values values;
    if (!profile->sampling.is_on && !profile->heap_cell_of) {
        *now = (struct live_at){(int64_t)(cell->allocated_bytes - cell->freed_bytes),
                                (int64_t)(cell->calls - cell->frees)};
        return true;
    }
    if (!profile_cell(profile, id, &values)) return false;
    *now = (struct live_at){values.exit_bytes, values.exit_blocks};
    return true;
}

static bool read_cells(struct snapshots *snapshots) {
    const struct profile *profile = snapshots->profile;
    if (snapshots->is_of_heaps) return read_heap_stacks(snapshots);
    snapshots->cell_count = profile->cell_count;
    snapshots->cells = calloc(profile->cell_count + 1, sizeof *snapshots->cells);
    if (!snapshots->cells) return false;
    for (size_t id = 0; id < profile->cell_count; id++) {
        struct snapshot_cell *cell = &snapshots->cells[id];
        struct recorded_cell from;
        cell->stack = profile->stack_of_cell[id];
        if (!cell->stack || !recording_cell(profile->recording, id, &from) ||
            !held_now(profile, id, &from, &cell->now))
            continue;
        cell->epoch = from.epoch;
        cell->origin = (uint32_t)id;
    }
    return true;
}

static int compare_values(const void *a, const void *b) {
    const struct cairn_value *first = &((const struct snapshot_value *)a)->value;
    const struct cairn_value *second = &((const struct snapshot_value *)b)->value;
    if (first->cell != second->cell) return first->cell < second->cell ? -1 : 1;
    return (first->to_epoch > second->to_epoch) - (first->to_epoch < second->to_epoch);
}

// The number that a value has among the cells here. False: it is of none of them.
static bool number_of_value(const struct snapshots *snapshots, struct cairn_value *value) {
    bool is_of_heap = (value->cell & CAIRN_VALUE_OF_HEAP) != 0;
    value->cell &= ~CAIRN_VALUE_OF_HEAP;
    return value->cell && value->cell < snapshots->cell_count &&
           is_of_heap == snapshots->is_of_heaps;
}

static bool read_values(struct snapshots *snapshots) {
    const struct profile *profile = snapshots->profile;
    size_t count = recording_count(profile->recording, CAIRN_SECTION_VALUES);
    if (count > UINT32_MAX) count = UINT32_MAX;
    snapshots->values = calloc(count + 1, sizeof *snapshots->values);
    if (!snapshots->values) return false;
    for (size_t i = 0; i < count; i++) {
        struct snapshot_value *kept = &snapshots->values[snapshots->value_count];
        kept->index = i;
        recording_value(profile->recording, i, &kept->value);
        if (number_of_value(snapshots, &kept->value)) snapshots->value_count++;
    }
    qsort(snapshots->values, snapshots->value_count, sizeof *snapshots->values, compare_values);
    for (size_t i = snapshots->value_count; i-- > 0;) {
        struct snapshot_cell *cell = &snapshots->cells[snapshots->values[i].value.cell];
        cell->first_value = (uint32_t)i;
        cell->value_count++;
    }
    return true;
}

// Of large recordings these are few: most stacks of a compiler's hold something for an instant.
static bool find_holders(struct snapshots *snapshots) {
    size_t count = snapshots->cell_count;
    snapshots->holders = calloc(count + 1, sizeof *snapshots->holders);
    for (size_t id = 0; snapshots->holders && id < count; id++) {
        const struct snapshot_cell *cell = &snapshots->cells[id];
        bool is_holder = cell->now.bytes || cell->now.blocks || cell->value_count;
        if (cell->stack && is_holder) snapshots->holders[snapshots->holder_count++] = (uint32_t)id;
    }
    return snapshots->holders != NULL;
}

// What the process' counters had is of malloc's heap: of another one the sum over its stacks, and
// what was allocated until then as far as its points say.
static bool sum_up_heap(struct snapshots *snapshots) {
    const struct profile *profile = snapshots->profile;
    struct cairn_heap_points points;
    struct cairn_point point;
    bool has_points = heap_points_find(profile->recording, profile->heap_scope, &points);
    for (size_t i = 0; i < snapshots->count; i++) {
        struct snapshot *snapshot = &snapshots->list[i];
        struct live_at sum = {0, 0}, *held = snapshots_live(snapshots, i);
        if (!held) return false;
        for (size_t at = 0; at < profile->built_stack_count; at++) held_add(&sum, held[at]);
        free(held);
        bool is_known = has_points && heap_points_at(&points, snapshot->at_ns, &point);
        snapshot->live_bytes = sum.bytes;
        snapshot->live_blocks = sum.blocks;
        snapshot->allocated_bytes = is_known ? point.allocated_bytes : 0;
        snapshot->allocations = is_known ? point.allocations : 0;
    }
    return true;
}

bool snapshots_build(struct snapshots *snapshots, const struct profile *profile,
                     struct error *error) {
    *snapshots = (struct snapshots){.profile = profile, .is_of_heaps = profile->heap != NULL};
    if (read_list(snapshots) && read_cells(snapshots) && read_values(snapshots) &&
        find_holders(snapshots) && (!profile->heap || sum_up_heap(snapshots)))
        return true;
    snapshots_free(snapshots);
    return error_set(error, "no memory for the snapshots of this recording");
}

bool snapshots_build_heaps(struct snapshots *snapshots, const struct profile *profile,
                           struct error *error) {
    *snapshots = (struct snapshots){.profile = profile, .is_of_heaps = true};
    if (read_list(snapshots) && read_cells(snapshots) && read_values(snapshots)) return true;
    snapshots_free(snapshots);
    return error_set(error, "no memory for the snapshots of this recording");
}

void snapshots_free(struct snapshots *snapshots) {
    free(snapshots->list);
    free(snapshots->cells);
    free(snapshots->holders);
    free(snapshots->values);
    *snapshots = (struct snapshots){0};
}

// The first entry of the cell that ends at `epoch` or later is the one that may cover it; NULL: it
// does not, or there is none.
static const struct snapshot_value *saved_at(const struct snapshots *snapshots,
                                             const struct snapshot_cell *cell, uint32_t epoch) {
    const struct snapshot_value *values = &snapshots->values[cell->first_value];
    uint32_t low = 0, high = cell->value_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (values[middle].value.to_epoch < epoch)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_covered = low < cell->value_count && values[low].value.from_epoch < epoch;
    return is_covered ? &values[low] : NULL;
}

// A saved number of blocks is one of samples where there are any.
static struct live_at saved_held(const struct snapshots *snapshots,
                                 const struct snapshot_value *saved) {
    struct live_at held = {saved->value.bytes, saved->value.blocks};
    struct cairn_sample_value behind;
    if (!snapshots->profile->sampling.is_on) return held;
    recording_sample_value(snapshots->profile->recording, saved->index, &behind);
    held_add(&held, (struct live_at){0, estimate_whole_blocks(behind.extra)});
    return held;
}

struct live_at snapshots_cell_live(const struct snapshots *snapshots, size_t index, size_t id) {
    const struct snapshot *snapshot = &snapshots->list[index];
    const struct snapshot_cell *cell = &snapshots->cells[id];
    if (!cell->stack || !snapshot->has_values) return (struct live_at){0, 0};
    const struct snapshot_value *saved = saved_at(snapshots, cell, snapshot->epoch);
    if (saved) return saved_held(snapshots, saved);
    return cell->epoch < snapshot->epoch ? cell->now : (struct live_at){0, 0};
}

bool snapshots_cell_samples_now(const struct snapshots *snapshots, size_t id,
                                struct cairn_sample_value *sums) {
    const struct recording *recording = snapshots->profile->recording;
    struct recorded_cell cell;
    struct cairn_sample_cell beside;
    *sums = (struct cairn_sample_value){0};
    if (!snapshots->cells[id].stack || !recording_cell(recording, id, &cell)) return false;
    recording_sample_cell(recording, id, &beside);
    sums->calls = cell.calls;
    sums->frees = cell.frees;
    sums->extra = beside.extra_calls - beside.extra_frees;
    sums->allocated_variance = beside.allocated_variance;
    sums->freed_variance = beside.freed_variance;
    sums->calls_variance = beside.calls_variance;
    sums->frees_variance = beside.frees_variance;
    return true;
}

bool snapshots_cell_samples(const struct snapshots *snapshots, size_t index, size_t id,
                            struct cairn_sample_value *sums) {
    const struct snapshot *snapshot = &snapshots->list[index];
    const struct snapshot_cell *cell = &snapshots->cells[id];
    *sums = (struct cairn_sample_value){0};
    if (!cell->stack) return false;
    if (!snapshot->has_values) return true;
    const struct snapshot_value *saved = saved_at(snapshots, cell, snapshot->epoch);
    if (saved)
        recording_sample_value(snapshots->profile->recording, saved->index, sums);
    else if (cell->epoch < snapshot->epoch)
        return snapshots_cell_samples_now(snapshots, id, sums);
    return true;
}

bool snapshots_cell_origin(const struct snapshots *snapshots, size_t id, uint32_t *stack_number,
                           uint32_t *generation) {
    const struct snapshot_cell *cell = &snapshots->cells[id];
    if (!cell->stack) return false;
    *stack_number = cell->stack - 1;
    *generation = generation_of(snapshots->profile, cell->origin);
    return true;
}

struct live_at *snapshots_live(const struct snapshots *snapshots, size_t index) {
    const struct profile *profile = snapshots->profile;
    struct live_at *held = calloc(profile->built_stack_count + 1, sizeof *held);
    for (size_t i = 0; held && i < snapshots->holder_count; i++) {
        size_t id = snapshots->holders[i];
        held_add(&held[snapshots->cells[id].stack - 1], snapshots_cell_live(snapshots, index, id));
    }
    return held;
}

struct live_at *snapshots_since(const struct snapshots *snapshots, uint32_t generation) {
    const struct profile *profile = snapshots->profile;
    struct live_at *held = calloc(profile->built_stack_count + 1, sizeof *held);
    for (size_t id = 0; held && id < snapshots->cell_count; id++) {
        const struct snapshot_cell *cell = &snapshots->cells[id];
        if (cell->stack && generation_of(profile, cell->origin) >= generation)
            held_add(&held[cell->stack - 1], cell->now);
    }
    return held;
}

uint32_t snapshots_last_generation(const struct snapshots *snapshots) {
    uint32_t last = snapshots->profile->recording->header.totals.generation;
    return last < GENERATIONS_MAX ? last : GENERATIONS_MAX;
}

void snapshots_survivors(const struct snapshots *snapshots, uint32_t stack_number,
                         struct live_at *survivors) {
    uint32_t last = snapshots_last_generation(snapshots);
    for (uint32_t i = 0; i <= last; i++) survivors[i] = (struct live_at){0, 0};
    for (size_t id = 0; id < snapshots->cell_count; id++) {
        const struct snapshot_cell *cell = &snapshots->cells[id];
        if (cell->stack != stack_number + 1) continue;
        uint32_t generation = generation_of(snapshots->profile, cell->origin);
        held_add(&survivors[generation < last ? generation : last], cell->now);
    }
}

const char *snapshot_reason_name(enum cairn_snapshot_reason reason) {
    static const char *const names[] = {
        [CAIRN_SNAPSHOT_NONE] = "none",   [CAIRN_SNAPSHOT_CHURN] = "churn",
        [CAIRN_SNAPSHOT_LOW] = "low",     [CAIRN_SNAPSHOT_HIGH] = "high",
        [CAIRN_SNAPSHOT_ASKED] = "asked", [CAIRN_SNAPSHOT_MARK] = "mark",
        [CAIRN_SNAPSHOT_EXIT] = "exit",
    };
    return names[reason < CAIRN_SNAPSHOT_REASONS ? reason : CAIRN_SNAPSHOT_NONE];
}
