// SPDX-License-Identifier: Apache-2.0
// The peak that several processes had together, as the two bounds between which it lies: the
// timelines are put on one clock, and at every moment the sums of their lower and upper bounds are
// taken.
#ifndef TOOL_MODEL_COMBINED_H
#define TOOL_MODEL_COMBINED_H

#include "tool/base/array.h"
#include "tool/model/reader.h"
#include "tool/model/run_row.h"

// From `at_ns` (CLOCK_MONOTONIC) on, the sums differ by this much.
struct combined_change {
    uint64_t at_ns;
    int64_t low_bytes, high_bytes;
};

struct combined {
    ARRAY(struct combined_change) changes;
    uint64_t least_bytes;  // the largest exact peak of a single process
};

// False without memory.
bool combined_add(struct combined *combined, const struct recording *recording);
// A process without a recording: it held something between nothing and its peak while it ran.
bool combined_add_row(struct combined *combined, const struct run_row *row);

void combined_find(struct combined *combined, uint64_t *low_bytes, uint64_t *high_bytes);
void combined_free(struct combined *combined);

#endif
