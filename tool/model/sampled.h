// SPDX-License-Identifier: Apache-2.0
// How sure the numbers of sampled cells are, as the recording says it (format/sample.h), without
// the stacks that they belong to.
#ifndef TOOL_MODEL_SAMPLED_H
#define TOOL_MODEL_SAMPLED_H

#include "tool/model/estimate.h"
#include "tool/model/reader.h"

// What a cell holds keeps changing after the peak; then it has its value at the peak apart.
// `is_peak_at_end`: the heap never was larger than at the end of the recording.
bool sampled_has_saved_peak(const struct recording *recording, const struct cairn_cell *cell,
                            bool is_peak_at_end);

// Of a cell; numbers of samples are what its counters say.
struct sampled_counts {
    int64_t calls, peak, exit;
};
void sampled_cell(const struct recording *recording, size_t id, bool has_saved_peak,
                  const struct sampled_counts *counts, struct estimate estimates[ESTIMATED_COUNT]);

// Over all cells. All zero if nothing was sampled.
void sampled_sum(const struct recording *recording, bool is_peak_at_end,
                 struct estimate estimates[ESTIMATED_COUNT]);

#endif
