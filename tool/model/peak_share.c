// SPDX-License-Identifier: Apache-2.0
#include "tool/model/peak_share.h"

#include <math.h>
#include <stdlib.h>

#include "tool/model/estimate.h"
#include "tool/model/figures.h"

// Returns the variance of what of a stack's samples at the peak had been replaced before: only that
// can have made this sum the highest.
static double renewed_of(const struct stack *stack) {
    const struct estimate *estimates = stack_more(stack)->estimates;
    double held = estimates[ESTIMATED_PEAK].bytes_variance;
    double all = estimates[ESTIMATED_ALLOCATED].bytes_variance;
    return held > 0 && all > held ? held * (1 - held / all) : 0;
}

// No stack gets more than its samples stand for, of which `room` is the part of their variance.
bool peak_share_make(struct profile *profile) {
    double over = profile->figures.peak_estimate.bytes_over, renewed = 0, held = 0, given = 0;
    double room = 1 / profile->figures.scale.rate_most;
    if (!(over > 0)) return true;
    profile->peak_over = calloc(profile->stack_count + 1, sizeof *profile->peak_over);
    if (!profile->peak_over) return false;
    for (size_t i = 0; i < profile->stack_count; i++) renewed += renewed_of(&profile->stacks[i]);
    for (size_t i = 0; i < profile->stack_count; i++) {
        double own = stack_more(&profile->stacks[i])->estimates[ESTIMATED_PEAK].bytes_variance;
        double part = renewed > 0 ? over * renewed_of(&profile->stacks[i]) / renewed : 0;
        if (own <= 0) continue;
        profile->peak_over[i] = fmin(part / own, room);
        given += profile->peak_over[i] * own;
        held += own;
    }
    double left = held * room - given, rest = left > 0 ? fmin((over - given) / left, 1) : 0;
    for (size_t i = 0; i < profile->stack_count && rest > 0; i++)
        profile->peak_over[i] += (room - profile->peak_over[i]) * rest;
    return true;
}

void peak_share_take(const struct profile *profile, size_t id, struct cell_values *values) {
    struct estimate *peak = &values->estimates[ESTIMATED_PEAK];
    bool is_known = profile->peak_over && id < profile->cell_count;
    uint32_t index_plus_1 = is_known ? profile->stack_of_cell[id] : 0;
    if (!index_plus_1) return;
    double bytes = round(profile->peak_over[index_plus_1 - 1] * peak->bytes_variance);
    double blocks = round(estimate_over_blocks(peak, bytes));
    peak->bytes_over = bytes;
    peak->blocks_over = blocks;
    values->peak_bytes = figures_add(values->peak_bytes, -(int64_t)bytes);
    values->peak_blocks = figures_add(values->peak_blocks, -(int64_t)blocks);
}

// Returns what all cells held at the peak, as they saved it.
static int64_t saved_peak(const struct recording *recording) {
    const size_t count = recording_count(recording, CAIRN_SECTION_CELLS);
    struct recorded_cell cell;
    int64_t sum = 0;
    for (size_t id = CAIRN_CELL_OTHER; id < count; id++) {
        if (!recording_cell(recording, id, &cell)) continue;
        const bool is_saved = sampled_has_saved_peak(recording, &cell, false);
        sum = figures_add(sum, is_saved ? cell.peak_bytes
                                        : (int64_t)(cell.allocated_bytes - cell.freed_bytes));
    }
    return sum;
}

bool peak_is_at_end(const struct recording *recording, int64_t exit_bytes) {
    const struct cairn_totals *totals = &recording->header.totals;
    if (exit_bytes <= 0) return false;
    if ((uint64_t)exit_bytes > totals->peak_bytes) return true;
    return totals->is_threaded && exit_bytes > saved_peak(recording);
}
