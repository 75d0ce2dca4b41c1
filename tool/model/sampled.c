// SPDX-License-Identifier: Apache-2.0
#include "tool/model/sampled.h"

#include <string.h>

enum { HIGH_HALF_SHIFT = 32 };

bool sampled_has_saved_peak(const struct recording *recording, const struct cairn_cell *cell,
                            bool is_peak_at_end) {
    return cell->epoch >= recording->header.totals.peak_epoch && !is_peak_at_end;
}

void sampled_cell(const struct recording *recording, size_t id, bool has_saved_peak,
                  const struct sampled_counts *counts, struct estimate estimates[ESTIMATED_COUNT]) {
    struct cairn_sample_cell cell;
    recording_sample_cell(recording, id, &cell);
    double bytes = cell.allocated_variance - cell.freed_variance;
    double blocks = cell.calls_variance - cell.frees_variance;
    estimates[ESTIMATED_ALLOCATED] =
        (struct estimate){counts->calls, cell.allocated_variance, cell.calls_variance};
    estimates[ESTIMATED_EXIT] = (struct estimate){counts->exit, bytes, blocks};
    estimates[ESTIMATED_PEAK] =
        has_saved_peak
            ? (struct estimate){counts->peak, cell.peak_bytes_variance, cell.peak_blocks_variance}
            : estimates[ESTIMATED_EXIT];
}

void sampled_sum(const struct recording *recording, bool is_peak_at_end,
                 struct estimate estimates[ESTIMATED_COUNT]) {
    struct estimate of_cell[ESTIMATED_COUNT] = {0};
    struct cairn_cell hot;
    struct cairn_cell_cold cold;
    memset(estimates, 0, ESTIMATED_COUNT * sizeof *estimates);
    if (!recording_is_sampled(recording)) return;
    for (size_t id = CAIRN_CELL_OTHER; recording_cell(recording, id, &hot, &cold); id++) {
        uint64_t calls = hot.calls | (uint64_t)cold.calls_high << HIGH_HALF_SHIFT;
        uint64_t frees = hot.frees | (uint64_t)cold.frees_high << HIGH_HALF_SHIFT;
        if (!calls && !frees && !hot.freed_bytes) continue;  // not used yet
        const struct sampled_counts counts = {
            .calls = (int64_t)calls, .peak = cold.peak_blocks, .exit = (int64_t)(calls - frees)};
        bool has_saved_peak = sampled_has_saved_peak(recording, &hot, is_peak_at_end);
        sampled_cell(recording, id, has_saved_peak, &counts, of_cell);
        for (int i = 0; i < ESTIMATED_COUNT; i++) estimate_add(&estimates[i], &of_cell[i]);
    }
}
