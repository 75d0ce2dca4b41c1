// SPDX-License-Identifier: Apache-2.0
#include "tool/model/combined.h"

#include "tool/model/figures.h"
#include "tool/model/timeline.h"

static bool add(struct combined *combined, uint64_t at_ns, int64_t low, int64_t high) {
    if (!low && !high) return true;
    struct combined_change *change = array_push(&combined->changes);
    if (change) *change = (struct combined_change){at_ns, low, high};
    return change != NULL;
}

static uint64_t later(uint64_t start_ns, uint64_t ns) {
    uint64_t sum;
    return __builtin_add_overflow(start_ns, ns, &sum) ? UINT64_MAX : sum;
}

static void note_peak(struct combined *combined, uint64_t peak_bytes) {
    if (peak_bytes > combined->least_bytes) combined->least_bytes = peak_bytes;
}

bool combined_add(struct combined *combined, const struct recording *recording) {
    uint64_t start_ns = recording->header.start_clock_ns;
    struct timeline timeline;
    struct timeline_span span = {0};
    int64_t low = 0, high = 0;
    timeline_start(&timeline, recording);
    note_peak(combined, timeline.peak_bytes);
    while (timeline_next(&timeline, &span)) {
        int64_t next_low = (int64_t)span.low_bytes, next_high = (int64_t)span.high_bytes;
        uint64_t at_ns = later(start_ns, span.start_ns);
        if (!add(combined, at_ns, next_low - low, next_high - high)) return false;
        low = next_low;
        high = next_high;
    }
    return add(combined, later(start_ns, span.end_ns), -low, -high);
}

bool combined_add_row(struct combined *combined, const struct run_row *row) {
    const uint64_t most = (uint64_t)1 << 47;
    uint64_t peak = row->figures.peak_bytes < most ? row->figures.peak_bytes : most;
    uint64_t end_ns = row->duration_ns ? later(row->start_clock_ns, row->duration_ns) : UINT64_MAX;
    note_peak(combined, peak);
    return add(combined, row->start_clock_ns, 0, (int64_t)peak) &&
           add(combined, end_ns, 0, -(int64_t)peak);
}

// Equal moments: what begins comes before what ends, so that a process that replaces another one
// within a tick of the clock is not lost from the upper bound.
static int compare(const void *a, const void *b) {
    const struct combined_change *first = a, *second = b;
    if (first->at_ns != second->at_ns) return first->at_ns < second->at_ns ? -1 : 1;
    return (first->high_bytes < second->high_bytes) - (first->high_bytes > second->high_bytes);
}

void combined_find(struct combined *combined, uint64_t *low_bytes, uint64_t *high_bytes) {
    size_t count = combined->changes.count;
    struct combined_change *changes = combined->changes.items;
    int64_t low = 0, high = 0, most_low = 0, most_high = 0;
    if (count) qsort(changes, count, sizeof *changes, compare);
    for (size_t i = 0; i < count; i++) {
        low = figures_add(low, changes[i].low_bytes);
        high = figures_add(high, changes[i].high_bytes);
        bool is_moment = i + 1 == count || changes[i + 1].at_ns != changes[i].at_ns;
        if (high > most_high) most_high = high;
        if (is_moment && low > most_low) most_low = low;
    }
    uint64_t least = combined->least_bytes;
    *low_bytes = (uint64_t)most_low > least ? (uint64_t)most_low : least;
    *high_bytes = (uint64_t)most_high > *low_bytes ? (uint64_t)most_high : *low_bytes;
}

void combined_free(struct combined *combined) {
    array_free(&combined->changes);
    *combined = (struct combined){0};
}
