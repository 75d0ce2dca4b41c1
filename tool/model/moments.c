// SPDX-License-Identifier: Apache-2.0
// A cell's value at a moment is that of the saved entry that covers the moment's epoch; without one
// it is what the cell holds now, if it has not changed since, and else nothing (docs/format.md).
#include "tool/model/moments.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/decode.h"

enum { GENERATIONS_MAX = CAIRN_MOMENT_LIMIT };

struct moment_value {
    struct cairn_value value;
    size_t index;  // in VALUES
};

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
    bool has_values = !recording_is_sampled(recording) || recording_has_sample_values(recording);
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
                                  .has_values = !from.is_inherited && has_values,
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
    const struct cairn_value *first = &((const struct moment_value *)a)->value;
    const struct cairn_value *second = &((const struct moment_value *)b)->value;
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
        struct moment_value *kept = &moments->values[moments->value_count];
        kept->index = i;
        recording_value(profile->recording, i, &kept->value);
        if (kept->value.cell && kept->value.cell < profile->cell_count) moments->value_count++;
    }
    qsort(moments->values, moments->value_count, sizeof *moments->values, compare_values);
    for (size_t i = moments->value_count; i-- > 0;) {
        struct moment_cell *cell = &moments->cells[moments->values[i].value.cell];
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

// The first entry of the cell that ends at `epoch` or later is the one that may cover it; NULL: it
// does not, or there is none.
static const struct moment_value *saved_at(const struct moments *moments,
                                           const struct moment_cell *cell, uint32_t epoch) {
    const struct moment_value *values = &moments->values[cell->first_value];
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
static struct held saved_held(const struct moments *moments, const struct moment_value *saved) {
    struct held held = {saved->value.bytes, saved->value.blocks};
    struct cairn_sample_value behind;
    if (!moments->profile->sampling.is_on) return held;
    recording_sample_value(moments->profile->recording, saved->index, &behind);
    held_add(&held, (struct held){0, estimate_whole_blocks(behind.extra)});
    return held;
}

struct held moments_cell_held(const struct moments *moments, size_t index, size_t id) {
    const struct moment *moment = &moments->list[index];
    const struct moment_cell *cell = &moments->cells[id];
    if (!cell->stack || !moment->has_values) return (struct held){0, 0};
    const struct moment_value *saved = saved_at(moments, cell, moment->epoch);
    if (saved) return saved_held(moments, saved);
    return cell->epoch < moment->epoch ? cell->now : (struct held){0, 0};
}

bool moments_cell_samples_now(const struct moments *moments, size_t id,
                              struct cairn_sample_value *sums) {
    const unsigned high_half = 32;
    const struct recording *recording = moments->profile->recording;
    struct cairn_cell hot;
    struct cairn_cell_cold cold;
    struct cairn_sample_cell beside;
    *sums = (struct cairn_sample_value){0};
    if (!moments->cells[id].stack || !recording_cell(recording, id, &hot, &cold)) return false;
    recording_sample_cell(recording, id, &beside);
    sums->calls = hot.calls | (uint64_t)cold.calls_high << high_half;
    sums->frees = hot.frees | (uint64_t)cold.frees_high << high_half;
    sums->extra = beside.extra_calls - beside.extra_frees;
    sums->allocated_variance = beside.allocated_variance;
    sums->freed_variance = beside.freed_variance;
    sums->calls_variance = beside.calls_variance;
    sums->frees_variance = beside.frees_variance;
    return true;
}

bool moments_cell_samples(const struct moments *moments, size_t index, size_t id,
                          struct cairn_sample_value *sums) {
    const struct moment *moment = &moments->list[index];
    const struct moment_cell *cell = &moments->cells[id];
    *sums = (struct cairn_sample_value){0};
    if (!cell->stack) return false;
    if (!moment->has_values) return true;
    const struct moment_value *saved = saved_at(moments, cell, moment->epoch);
    if (saved)
        recording_sample_value(moments->profile->recording, saved->index, sums);
    else if (cell->epoch < moment->epoch)
        return moments_cell_samples_now(moments, id, sums);
    return true;
}

bool moments_cell_origin(const struct moments *moments, size_t id, uint32_t *stack_number,
                         uint32_t *generation) {
    const struct moment_cell *cell = &moments->cells[id];
    if (!cell->stack) return false;
    *stack_number = cell->stack - 1;
    *generation = cell->generation;
    return true;
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
