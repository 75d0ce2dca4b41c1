// SPDX-License-Identifier: Apache-2.0
#include "tool/model/combined.h"

#include <math.h>

#include "tool/model/figures.h"
#include "tool/model/timeline.h"

static bool add(struct combined *combined, uint64_t at_ns, int64_t low, int64_t high) {
    if (!low && !high) return true;
    struct combined_change *change = array_push(&combined->changes);
    if (change)
        *change = (struct combined_change){.at_ns = at_ns, .low_bytes = low, .high_bytes = high};
    return change != NULL;
}

// The process lives from one moment to the other, and its numbers are so sure.
static bool add_estimate(struct combined *combined, uint64_t start_ns, uint64_t end_ns,
                         const struct estimate *estimate, bool is_fork) {
    if (!estimate->samples) return true;
    const struct estimate less = {-estimate->samples, -estimate->bytes_variance,
                                  -estimate->blocks_variance};
    double deviation = estimate->bytes_variance > 0 ? sqrt(estimate->bytes_variance) : 0;
    struct combined_change *begin = array_push(&combined->changes);
    if (begin)
        *begin = (struct combined_change){.at_ns = start_ns,
                                          .estimate = *estimate,
                                          .bytes_deviation = deviation,
                                          .fork_count = is_fork};
    struct combined_change *end = begin ? array_push(&combined->changes) : NULL;
    if (end)
        *end = (struct combined_change){.at_ns = end_ns,
                                        .estimate = less,
                                        .bytes_deviation = -deviation,
                                        .fork_count = -(int)is_fork};
    return end != NULL;
}

static uint64_t later(uint64_t start_ns, uint64_t ns) {
    uint64_t sum;
    return __builtin_add_overflow(start_ns, ns, &sum) ? UINT64_MAX : sum;
}

static void note_peak(struct combined *combined, uint64_t peak_bytes,
                      const struct estimate *estimate) {
    if (peak_bytes <= combined->least_bytes) return;
    combined->least_bytes = peak_bytes;
    combined->least_estimate = *estimate;
}

bool combined_add(struct combined *combined, const struct recording *recording) {
    uint64_t start_ns = recording->header.start_clock_ns;
    struct timeline timeline;
    struct timeline_span span = {0};
    int64_t low = 0, high = 0;
    timeline_start(&timeline, recording);
    note_peak(combined, timeline.peak_bytes, &timeline.peak_estimate);
    while (timeline_next(&timeline, &span)) {
        int64_t next_low = (int64_t)span.low_bytes, next_high = (int64_t)span.high_bytes;
        uint64_t at_ns = later(start_ns, span.start_ns);
        if (!add(combined, at_ns, next_low - low, next_high - high)) return false;
        low = next_low;
        high = next_high;
    }
    uint64_t end_ns = later(start_ns, span.end_ns);
    return add(combined, end_ns, -low, -high) &&
           add_estimate(combined, start_ns, end_ns, &timeline.peak_estimate, timeline.is_fork);
}

bool combined_add_row(struct combined *combined, const struct run_row *row) {
    const uint64_t most = (uint64_t)1 << 47;
    uint64_t peak = row->figures.peak_bytes < most ? row->figures.peak_bytes : most;
    uint64_t end_ns = row->duration_ns ? later(row->start_clock_ns, row->duration_ns) : UINT64_MAX;
    note_peak(combined, peak, &row->figures.peak_estimate);
    return add(combined, row->start_clock_ns, 0, (int64_t)peak) &&
           add(combined, end_ns, 0, -(int64_t)peak) &&
           add_estimate(combined, row->start_clock_ns, end_ns, &row->figures.peak_estimate,
                        row->figures.inherited_blocks != 0);
}

// Equal moments: what begins comes before what ends, so that a process that replaces another one
// within a tick of the clock is not lost from the upper bound.
static int compare(const void *a, const void *b) {
    const struct combined_change *first = a, *second = b;
    if (first->at_ns != second->at_ns) return first->at_ns < second->at_ns ? -1 : 1;
    if (first->high_bytes != second->high_bytes)
        return first->high_bytes < second->high_bytes ? 1 : -1;
    return (first->estimate.samples < second->estimate.samples) -
           (first->estimate.samples > second->estimate.samples);
}

// The highest sums, and how sure the higher one is.
static void find_highest(const struct combined *combined, int64_t *most_low, int64_t *most_high,
                         struct estimate *estimate) {
    const struct combined_change *changes = combined->changes.items;
    size_t count = combined->changes.count;
    struct estimate sum = {0};
    double deviation = 0;
    int fork_count = 0;
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        low = figures_add(low, changes[i].low_bytes);
        high = figures_add(high, changes[i].high_bytes);
        estimate_add(&sum, &changes[i].estimate);
        deviation += changes[i].bytes_deviation;
        fork_count += changes[i].fork_count;
        bool is_moment = i + 1 == count || changes[i + 1].at_ns != changes[i].at_ns;
        bool is_as_high = high == *most_high && sum.samples > estimate->samples;
        if (high > *most_high || is_as_high) {
            *estimate = sum;
            if (fork_count > 0) estimate->bytes_variance = deviation * deviation;
        }
        if (high > *most_high) *most_high = high;
        if (is_moment && low > *most_low) *most_low = low;
    }
}

struct combined_peak combined_find(struct combined *combined) {
    size_t count = combined->changes.count;
    int64_t most_low = 0, most_high = 0;
    struct combined_peak peak = {.low_bytes = combined->least_bytes};
    if (count) qsort(combined->changes.items, count, sizeof *combined->changes.items, compare);
    find_highest(combined, &most_low, &most_high, &peak.estimate);
    if ((uint64_t)most_low > peak.low_bytes) peak.low_bytes = (uint64_t)most_low;
    bool is_higher = (uint64_t)most_high > peak.low_bytes;
    peak.high_bytes = is_higher ? (uint64_t)most_high : peak.low_bytes;
    if (!is_higher && (uint64_t)most_low <= combined->least_bytes)
        peak.estimate = combined->least_estimate;
    return peak;
}

void combined_free(struct combined *combined) {
    array_free(&combined->changes);
    *combined = (struct combined){0};
}
