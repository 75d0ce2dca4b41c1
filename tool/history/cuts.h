// SPDX-License-Identifier: Apache-2.0
// Cuts a noisy series into two or three parts. A part is cut in two at the commit where the
// means of both sides differ most, in units of how sure that difference is; if no cut stands out, a
// piece is cut out that differs from all around it: a level that came and went. The scatter
// of values is taken from the differences between neighbours within the parts, on which levels and
// drifts have no part, and from runs of one commit, on which changes have none; where samples know
// their noise, that is a floor.
#ifndef TOOL_HISTORY_CUTS_H
#define TOOL_HISTORY_CUTS_H

#include <math.h>

#include "tool/history/step_value.h"

// Values that never differed: two that agree after so many that agreed on another.
enum { QUIET_BEFORE = 4, QUIET_AFTER = 2 };
// So many times have runs of one commit to agree before they are known to.
enum { REPEATS_LEAST = 3 };

// All values, with what sums over a part of them are made of.
struct line {
    const struct step_value *values;
    double *sums, *scatters;  // of the values, of the neighbours before an index
    double repeat_variance;   // of runs of one commit
    size_t repeats;           // how many tell it
};

// A part of a line: values [start, end).
struct part {
    const struct line *line;
    size_t start, end;
    double floor;          // the least variance of a value
    bool is_seen;          // only what is seen tells of the noise
    double most_variance;  // by neighbours that no step lies between
};

// The pieces on both sides of a cut, or around a piece.
struct cut {
    size_t at, end;  // first value of the right side, or of the piece and behind it; 0: none
    double score;    // 1: it stands out just so
};

// Finds a cut or a piece of a part. False without memory; `cut->at` is 0 if nothing stands out.
bool cuts_find(struct part *part, struct cut *cut);

static inline double mean(const struct step_value *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)values[i].value / (double)count;
    return sum;
}

// Returns what the difference of two neighbours says of the variance of a value.
static inline double scatter_of_pair(const struct step_value *value) {
    double difference = (double)value[1].value - (double)value[0].value;
    return difference * difference / 2;
}

struct range {
    double low, high;
};

static inline void widen(struct range *range, const struct step_value *value) {
    double low = (double)value->value - (double)value->bound,
           high = (double)value->value + (double)value->bound;
    if (low < range->low) range->low = low;
    if (high > range->high) range->high = high;
}

static inline struct range range_of(const struct step_value *values, size_t count) {
    struct range range = {INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) widen(&range, &values[i]);
    return range;
}

#endif
