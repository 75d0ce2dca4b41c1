// SPDX-License-Identifier: Apache-2.0
// A cell's value at a moment is that of the saved entry that covers the moment's epoch; without one
// it is what the cell holds now, if it has not changed since, and else nothing (docs/format.md).
#include "tool/model/moments.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/decode.h"

enum { GENERATIONS_MAX = CAIRN_MOMENT_LIMIT };

struct moment_cell {
    struct held now;
    uint32_t stack;  // number + 1; 0: not used
    uint32_t epoch;  // of its last change
    uint32_t generation;
    uint32_t first_value, value_count;  // in `values`
};

static void held_add(struct held *sum, struct held added) {
    sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)added.bytes);
    sum->blocks = (int64_t)((uint64_t)sum->blocks + (uint64_t)added.blocks);
}

static bool read_list(struct moments *moments) {
    const struct recording *recording = moments->profile->recording;
    size_t count = recording_count(recording, CAIRN_SECTION_MOMENTS);
    if (count > CAIRN_MOMENT_LIMIT) count = CAIRN_MOMENT_LIMIT;
    moments->list = calloc(count + 1, sizeof *moments->list);
    // a sample's blocks are not in the cells
    bool is_sampled = recording_is_sampled(recording);
    if (!moments->list) return false;
    for (size_t i = 0; i < count; i++) {
        struct cairn_moment from;
        recording_moment(recording, i, &from);
        if (from.reason == CAIRN_MOMENT_NONE || from.reason > CAIRN_MOMENT_EXIT) continue;
        struct moment *moment = &moments->list[moments->count++];
        *moment = (struct moment){.reason = (enum cairn_moment_reason)from.reason,
                                  .generation = from.generation,
                                  .at_ns = from.time_ns,
                                  .live_bytes = from.live_bytes,
                                  .live_blocks = from.live_blocks,
                                  .allocated_bytes = from.allocated_bytes,
                                  .allocations = from.allocations,
                                  .missing_values = from.missing_values,
                                  .has_values = !from.is_inherited && !is_sampled,
                                  .epoch = from.epoch};
        // a coarse clock may lag behind the one that the recording's start was read from
        if ((int64_t)moment->at_ns < 0) moment->at_ns = 0;
        memcpy(moment->label, from.label, sizeof moment->label);
    }
    return true;
}

// Blocks that a foreign cell frees are of the generation of the cell that counted them.
static uint32_t generation_of(const struct profile *profile, uint32_t cell) {
    const struct decoder decoder = {.recording = profile->recording};
    struct cairn_cell hot;
    struct cairn_cell_cold cold = {0};
    struct record record;
    if (decoder_record(&decoder, cell, &record) && record.is_foreign) cell = record.older;
    return recording_cell(profile->recording, cell, &hot, &cold) ? cold.generation : 0;
}

static bool read_cells(struct moments *moments) {
    const struct profile *profile = moments->profile;
    moments->cells = calloc(profile->cell_count + 1, sizeof *moments->cells);
    if (!moments->cells) return false;
    for (size_t id = 0; id < profile->cell_count; id++) {
        struct moment_cell *cell = &moments->cells[id];
        struct cairn_cell hot;
        struct cairn_cell_cold cold;
        struct cell_values values;
        cell->stack = profile->stack_of_cell[id];
        if (!cell->stack || !profile_cell(profile, id, &values)) continue;
        recording_cell(profile->recording, id, &hot, &cold);
        cell->now = (struct held){values.exit_bytes, values.exit_blocks};
        cell->epoch = hot.epoch;
        cell->generation = generation_of(profile, (uint32_t)id);
    }
    return true;
}

static int compare_values(const void *a, const void *b) {
    const struct cairn_value *first = a, *second = b;
    if (first->cell != second->cell) return first->cell < second->cell ? -1 : 1;
    return (first->to_epoch > second->to_epoch) - (first->to_epoch < second->to_epoch);
}

static bool read_values(struct moments *moments) {
    const struct profile *profile = moments->profile;
    size_t count = recording_count(profile->recording, CAIRN_SECTION_VALUES);
    if (count > UINT32_MAX) count = UINT32_MAX;
    moments->values = calloc(count + 1, sizeof *moments->values);
    if (!moments->values) return false;
    for (size_t i = 0; i < count; i++) {
        struct cairn_value *value = &moments->values[moments->value_count];
        recording_value(profile->recording, i, value);
        if (value->cell && value->cell < profile->cell_count) moments->value_count++;
    }
    qsort(moments->values, moments->value_count, sizeof *moments->values, compare_values);
    for (size_t i = moments->value_count; i-- > 0;) {
        struct moment_cell *cell = &moments->cells[moments->values[i].cell];
        cell->first_value = (uint32_t)i;
        cell->value_count++;
    }
    return true;
}

bool moments_build(struct moments *moments, const struct profile *profile, struct error *error) {
    *moments = (struct moments){.profile = profile};
    if (read_list(moments) && read_cells(moments) && read_values(moments)) return true;
    moments_free(moments);
    return error_set(error, "no memory for the moments of this recording");
}

void moments_free(struct moments *moments) {
    free(moments->list);
    free(moments->cells);
    free(moments->values);
    *moments = (struct moments){0};
}

// The first entry of the cell that ends at `epoch` or later is the one that may cover it.
static struct held value_at(const struct moments *moments, const struct moment_cell *cell,
                            uint32_t epoch) {
    const struct cairn_value *values = &moments->values[cell->first_value];
    uint32_t low = 0, high = cell->value_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (values[middle].to_epoch < epoch)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < cell->value_count && values[low].from_epoch < epoch)
        return (struct held){values[low].bytes, values[low].blocks};
    return cell->epoch < epoch ? cell->now : (struct held){0, 0};
}

struct held moments_cell_held(const struct moments *moments, size_t index, size_t id) {
    const struct moment *moment = &moments->list[index];
    const struct moment_cell *cell = &moments->cells[id];
    if (!cell->stack || !moment->has_values) return (struct held){0, 0};
    return value_at(moments, cell, moment->epoch);
}

struct held *moments_held(const struct moments *moments, size_t index) {
    const struct profile *profile = moments->profile;
    struct held *held = calloc(profile->built_stack_count + 1, sizeof *held);
    for (size_t id = 0; held && id < profile->cell_count; id++) {
        const struct moment_cell *cell = &moments->cells[id];
        if (cell->stack) held_add(&held[cell->stack - 1], moments_cell_held(moments, index, id));
    }
    return held;
}

struct held *moments_since(const struct moments *moments, uint32_t generation) {
    const struct profile *profile = moments->profile;
    struct held *held = calloc(profile->built_stack_count + 1, sizeof *held);
    for (size_t id = 0; held && id < profile->cell_count; id++) {
        const struct moment_cell *cell = &moments->cells[id];
        if (cell->stack && cell->generation >= generation)
            held_add(&held[cell->stack - 1], cell->now);
    }
    return held;
}

uint32_t moments_last_generation(const struct moments *moments) {
    uint32_t last = moments->profile->recording->header.totals.generation;
    return last < GENERATIONS_MAX ? last : GENERATIONS_MAX;
}

void moments_survivors(const struct moments *moments, uint32_t stack_number,
                       struct held *survivors) {
    uint32_t last = moments_last_generation(moments);
    for (uint32_t i = 0; i <= last; i++) survivors[i] = (struct held){0, 0};
    for (size_t id = 0; id < moments->profile->cell_count; id++) {
        const struct moment_cell *cell = &moments->cells[id];
        if (cell->stack != stack_number + 1) continue;
        held_add(&survivors[cell->generation < last ? cell->generation : last], cell->now);
    }
}

const char *moment_reason_name(enum cairn_moment_reason reason) {
    static const char *const names[] = {
        [CAIRN_MOMENT_NONE] = "none", [CAIRN_MOMENT_CHURN] = "churn",
        [CAIRN_MOMENT_HIGH] = "high", [CAIRN_MOMENT_ASKED] = "asked",
        [CAIRN_MOMENT_MARK] = "mark", [CAIRN_MOMENT_EXIT] = "exit",
    };
    return names[reason <= CAIRN_MOMENT_EXIT ? reason : CAIRN_MOMENT_NONE];
}
