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

// The process lives from one time to the other, and its numbers are so sure.
static bool add_estimate(struct combined *combined, uint64_t start_ns, uint64_t end_ns,
                         const struct estimate *estimate, bool is_fork) {
    if (!estimate->samples && !(estimate->bytes_weight > 0)) return true;
    const struct estimate less = {.samples = -estimate->samples,
                                  .uncertain = -estimate->uncertain,
                                  .extra_blocks = -estimate->extra_blocks,
                                  .bytes_over = -estimate->bytes_over,
                                  .blocks_over = -estimate->blocks_over,
                                  .bytes_variance = -estimate->bytes_variance,
                                  .blocks_variance = -estimate->blocks_variance};
    struct estimate more = *estimate;
    estimate_forget_limits(&more);
    double deviation = estimate->bytes_variance > 0 ? sqrt(estimate->bytes_variance) : 0;
    struct combined_change *begin = array_push(&combined->changes);
    if (begin)
        *begin = (struct combined_change){.at_ns = start_ns,
                                          .estimate = more,
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

// A fork may hold all it inherited for as long as it lives.
static bool add_inherited(struct combined *combined, uint64_t start_ns, uint64_t end_ns,
                          uint64_t inherited_bytes) {
    const uint64_t most = (uint64_t)1 << 47;
    int64_t bytes = (int64_t)(inherited_bytes < most ? inherited_bytes : most);
    if (!bytes) return true;
    for (int is_end = 0; is_end < 2; is_end++) {
        struct combined_change *change = array_push(&combined->changes);
        if (!change) return false;
        *change = (struct combined_change){.at_ns = is_end ? end_ns : start_ns,
                                           .inherited_bytes = is_end ? -bytes : bytes};
    }
    return true;
}

static const uint64_t pss_most = (uint64_t)1 << 47;  // more is damage

static bool add_pss_change(struct combined *combined, uint64_t at_ns, int64_t bytes) {
    struct combined_pss *change = array_push(&combined->pss);
    if (change) *change = (struct combined_pss){.at_ns = at_ns, .bytes = bytes};
    return change != NULL;
}

// Returns the PSS of the reading behind `index`; 0: the last one, after which nothing is known.
static int64_t next_pss(const struct recording *recording, size_t index) {
    struct cairn_resident value;
    while (recording_resident(recording, ++index, &value))
        if (value.pss_bytes && value.pss_bytes <= pss_most) return (int64_t)value.pss_bytes;
    return 0;
}

// Counts what was seen when it was looked at, and between two looks the less of both: the sum over
// processes is no more than they had together, as far as none of them was lower meanwhile.
static bool add_pss(struct combined *combined, const struct recording *recording, uint64_t end_ns) {
    struct cairn_resident value;
    int64_t last = 0;
    bool is_seen = false;
    for (size_t i = 0; recording_resident(recording, i, &value); i++) {
        if (!value.pss_bytes || value.pss_bytes > pss_most) continue;
        const uint64_t at_ns = later(recording->header.start_clock_ns, value.at_ns);
        if (at_ns >= end_ns) break;  // others may have what it gave back
        const int64_t seen = (int64_t)value.pss_bytes, next = next_pss(recording, i);
        const int64_t between = seen < next ? seen : next;
        if (!add_pss_change(combined, at_ns, seen - last) ||
            !add_pss_change(combined, later(at_ns, 1), between - seen))
            return false;
        last = between;
        is_seen = true;
    }
    combined->pss_processes += is_seen;
    return true;
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
           add_estimate(combined, start_ns, end_ns, &timeline.peak_estimate, timeline.is_fork) &&
           add_inherited(combined, start_ns, end_ns, timeline.copied_bytes) &&
           add_pss(combined, recording, end_ns);
}

bool combined_add_row(struct combined *combined, const struct run_row *row) {
    const uint64_t most = (uint64_t)1 << 47;
    uint64_t peak = row->figures.peak_bytes < most ? row->figures.peak_bytes : most;
    uint64_t end_ns = row->duration_ns ? later(row->start_clock_ns, row->duration_ns) : UINT64_MAX;
    note_peak(combined, peak, &row->figures.peak_estimate);
    return add(combined, row->start_clock_ns, 0, (int64_t)peak) &&
           add(combined, end_ns, 0, -(int64_t)peak) &&
           add_estimate(combined, row->start_clock_ns, end_ns, &row->figures.peak_estimate,
                        row->figures.inherited_blocks != 0) &&
           add_inherited(combined, row->start_clock_ns, end_ns, row->figures.inherited_bytes);
}

// Equal times: what begins comes before what ends, so that a process that replaces another one
// within a tick of the clock is not lost from the upper bound.
static int compare(const void *a, const void *b) {
    const struct combined_change *first = a, *second = b;
    if (first->at_ns != second->at_ns) return first->at_ns < second->at_ns ? -1 : 1;
    if (first->high_bytes != second->high_bytes)
        return first->high_bytes < second->high_bytes ? 1 : -1;
    return (first->estimate.samples < second->estimate.samples) -
           (first->estimate.samples > second->estimate.samples);
}

struct highest {
    int64_t low, high;
    int64_t inherited_bytes;   // at the time of the higher one ...
    struct estimate estimate;  // ... and how sure it is
};

// The highest sums.
static void find_highest(const struct combined *combined, struct highest *most) {
    const struct combined_change *changes = combined->changes.items;
    size_t count = combined->changes.count;
    struct estimate sum = {0}, *estimate = &most->estimate;
    int64_t inherited = 0;
    double deviation = 0;
    int fork_count = 0;
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        low = figures_add(low, changes[i].low_bytes);
        high = figures_add(high, changes[i].high_bytes);
        estimate_add(&sum, &changes[i].estimate);
        deviation += changes[i].bytes_deviation;
        fork_count += changes[i].fork_count;
        inherited = figures_add(inherited, changes[i].inherited_bytes);
        bool is_snapshot = i + 1 == count || changes[i + 1].at_ns != changes[i].at_ns;
        bool is_as_high = high == most->high && sum.samples > estimate->samples;
        if (high == most->high && inherited > most->inherited_bytes)
            most->inherited_bytes = inherited;
        if (high > most->high || is_as_high) {
            *estimate = sum;
            if (fork_count > 0) estimate->bytes_variance = deviation * deviation;
        }
        if (high > most->high) {
            most->high = high;
            most->inherited_bytes = inherited;
        }
        if (is_snapshot && low > most->low) most->low = low;
    }
}

static int compare_pss(const void *a, const void *b) {
    const struct combined_pss *first = a, *second = b;
    if (first->at_ns != second->at_ns) return first->at_ns < second->at_ns ? -1 : 1;
    return (first->bytes > second->bytes) - (first->bytes < second->bytes);
}

static uint64_t highest_pss(struct combined *combined) {
    int64_t sum = 0, most = 0;
    if (combined->pss.count)
        qsort(combined->pss.items, combined->pss.count, sizeof *combined->pss.items, compare_pss);
    for (size_t i = 0; i < combined->pss.count; i++) {
        sum = figures_add(sum, combined->pss.items[i].bytes);
        if (sum > most) most = sum;
    }
    return (uint64_t)most;
}

struct combined_peak combined_find(struct combined *combined) {
    size_t count = combined->changes.count;
    struct highest most = {0};
    struct combined_peak peak = {.low_bytes = combined->least_bytes,
                                 .pss_bytes = highest_pss(combined),
                                 .pss_processes = combined->pss_processes};
    if (count) qsort(combined->changes.items, count, sizeof *combined->changes.items, compare);
    find_highest(combined, &most);
    peak.estimate = most.estimate;
    peak.inherited_bytes = most.inherited_bytes > 0 ? (uint64_t)most.inherited_bytes : 0;
    if ((uint64_t)most.low > peak.low_bytes) peak.low_bytes = (uint64_t)most.low;
    bool is_higher = (uint64_t)most.high > peak.low_bytes;
    peak.high_bytes = is_higher ? (uint64_t)most.high : peak.low_bytes;
    if (peak.inherited_bytes > peak.high_bytes) peak.inherited_bytes = peak.high_bytes;
    if (!is_higher && (uint64_t)most.low <= combined->least_bytes)
        peak.estimate = combined->least_estimate;
    return peak;
}

void combined_free(struct combined *combined) {
    array_free(&combined->changes);
    array_free(&combined->pss);
    *combined = (struct combined){0};
}
