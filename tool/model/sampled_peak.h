// SPDX-License-Identifier: Apache-2.0
// The peak of a heap of which only samples are known. The highest of many estimated sums is too
// high: where a heap stays as it is while its blocks come and go, each turn of its blocks is
// another sample of the same truth, and the highest of thousands of them is several deviations
// above it. The samples alone cannot tell this from a heap that rose for a moment. So the peak is
// the highest level that the timeline shows beyond such noise, its interval ends above at that of
// the highest sum, and below at that of the level.
//
// Levels are means over neighbouring points of the timeline, over few and over many: the noise of a
// mean falls with the turns that it spans, and so does that of the highest mean.
// tests/unit/tool/model/sampled_peak_test.c has how often the interval holds the truth.
#ifndef TOOL_MODEL_SAMPLED_PEAK_H
#define TOOL_MODEL_SAMPLED_PEAK_H

#include <stddef.h>
#include <stdint.h>

#include "tool/model/reader.h"

// An interval of the timeline in which something was noted.
struct peak_point {
    double last_bytes, most_bytes;  // sums of samples: at its end, and the highest
    double allocated_bytes;         // counted, since the start
};

// Holds the figures of the peak that are known beside the timeline.
struct peak_known {
    double bytes;         // the highest sum of samples
    double variance;      // of that
    double sample_bytes;  // T, what a sample stands for
    double least_bytes;   // the heap held so much for certain, or as an estimate of one moment
};

// Returns by how much the highest sum is above the highest level: never less than 0.
double sampled_peak_over(const struct peak_point *points, size_t count,
                         const struct peak_known *known);

// The same of a recording's timeline. 0 without one, or without memory.
double sampled_peak_over_of(const struct recording *recording, const struct peak_known *known);

#endif
