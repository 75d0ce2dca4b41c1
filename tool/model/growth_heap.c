// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth_heap.h"

#include "tool/model/curve.h"
#include "tool/model/heaps.h"
#include "tool/model/reached.h"
#include "tool/model/timeline.h"

enum { CELLS = GROWTH_CELLS };

uint64_t growth_heap_middle(const struct growth_heap *heap, uint32_t cell) {
    double part = ((double)cell + 0.5) / CELLS;
    return heap->start_ns + (uint64_t)((double)(heap->end_ns - heap->start_ns) * part);
}

static uint64_t start_of(const struct growth_heap *heap, uint32_t cell) {
    return heap->start_ns +
           (uint64_t)((double)(heap->end_ns - heap->start_ns) * (double)cell / CELLS);
}

uint32_t growth_heap_cell(const struct growth_heap *heap, uint64_t at_ns) {
    uint32_t cell = 0;
    while (cell < CELLS && growth_heap_middle(heap, cell) < at_ns) cell++;
    return cell;
}

static bool start_timeline(struct timeline *timeline, const struct profile *profile,
                           struct cairn_heap_points *heap) {
    if (profile->heap) {
        if (!heap_points_find(profile->recording, profile->heap_scope, heap)) return false;
        timeline_start_heap(timeline, profile->recording, heap, profile->peak.bytes,
                            profile->peak.at_ns);
        return true;
    }
    if (!recording_count(profile->recording, CAIRN_SECTION_POINTS)) return false;
    timeline_start(timeline, profile->recording);
    return true;
}

static void read_timeline(struct growth_heap *heap) {
    struct cairn_heap_points points;
    struct timeline timeline;
    struct timeline_span span;
    for (uint32_t i = 0; i < CELLS; i++) heap->high[i] = INT64_MAX;
    if (!start_timeline(&timeline, heap->profile, &points)) return;
    uint32_t cell = 0;
    while (cell < CELLS && timeline_next(&timeline, &span)) {
        for (; cell < CELLS && growth_heap_middle(heap, cell) < span.end_ns; cell++) {
            // the last interval has the frees at the end in it
            bool is_last = cell && span.end_ns >= heap->end_ns;
            heap->high[cell] = (int64_t)span.high_bytes;
            heap->low[cell] = (int64_t)span.low_bytes;
            if (is_last && heap->low[cell] < heap->low[cell - 1])
                heap->low[cell] = heap->low[cell - 1];
        }
    }
}

// Allocated until then, as a point of the timeline has it; 0 of an allocator by name: it has none.
static uint64_t allocated_until(const struct profile *profile, uint64_t at_ns) {
    const struct recording *recording = profile->recording;
    struct cairn_point point;
    if (profile->heap || profile->is_of_mappings) return 0;
    uint64_t interval_ns = recording->header.totals.point_ns;
    uint64_t index = interval_ns ? at_ns / interval_ns + 1 : 0;
    size_t count = recording_count(recording, CAIRN_SECTION_POINTS);
    if (index > count) index = count;
    while (index && (!recording_point(recording, (size_t)index - 1, &point) || !point.is_used))
        index--;
    return index ? point.allocated_bytes : 0;
}

// The cells before the program shuts down; all of them, if it does not so as to be seen.
static uint32_t cells_before_shutdown(const struct growth_heap *heap) {
    const struct profile *profile = heap->profile;
    const double all_bytes = (double)profile->totals.allocated_bytes;
    const uint32_t from = (uint32_t)(GROWTH_SHUTDOWN_SHARE * CELLS);
    if (!profile_has_ended(profile) || heap->high[from] == INT64_MAX) return CELLS;
    const double least = GROWTH_GIVEN_BACK_SHARE * (double)heap->high[from];
    uint32_t cell = from;
    while (cell < CELLS && (double)heap->high[cell] >= least) cell++;
    if (cell == CELLS) return CELLS;
    double until = (double)allocated_until(profile, start_of(heap, cell));
    return until >= GROWTH_SHUTDOWN_SHARE * all_bytes ? cell : CELLS;
}

// All that was allocated since then, and what threads may not have noted yet.
int64_t growth_heap_rise_most(const struct growth_heap *heap, uint32_t cell) {
    const struct profile *profile = heap->profile;
    const struct recording *recording = profile->recording;
    const uint64_t interval_ns = recording->header.totals.point_ns;
    const uint64_t at_ns = start_of(heap, cell);
    if (heap->high[CELLS - 1] == INT64_MAX || at_ns < interval_ns) return INT64_MAX;
    uint64_t all = allocated_until(profile, heap->end_ns);
    uint64_t before = allocated_until(profile, at_ns - interval_ns);
    const struct cairn_totals *totals = &recording->header.totals;
    uint64_t most = all - before + (uint64_t)recording_margin_bytes(recording, totals->peak_bytes);
    return all && all >= before && most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

// Nothing was allocated that was noted, and the heap held what it does at the end: nothing was
// freed either.
uint32_t growth_heap_settled(const struct growth_heap *heap) {
    const struct profile *profile = heap->profile;
    const struct recording *recording = profile->recording;
    const uint64_t interval_ns = recording->header.totals.point_ns;
    const uint64_t all = allocated_until(profile, heap->end_ns);
    const int64_t margin = recording_margin_bytes(recording, recording->header.totals.peak_bytes);
    uint32_t cell = CELLS;
    while (cell && all) {
        uint64_t at_ns = start_of(heap, cell - 1);
        bool is_quiet = at_ns >= interval_ns && heap->high[cell - 1] != INT64_MAX &&
                        allocated_until(profile, at_ns - interval_ns) + (uint64_t)margin >= all;
        if (!is_quiet || growth_rise(profile->exit_bytes, heap->high[cell - 1]) > margin) break;
        cell--;
    }
    return cell;
}

static uint32_t cells_of_interval(const struct growth_heap *heap) {
    const uint64_t cell_ns = (heap->end_ns - heap->start_ns) / CELLS + 1;
    return (uint32_t)(heap->profile->recording->header.totals.point_ns / cell_ns) + 1;
}

// Within an interval of the timeline the lowest may have been before the highest.
int64_t growth_heap_given_back(const struct growth_heap *heap, uint32_t from, uint32_t to) {
    const uint32_t interval = cells_of_interval(heap);
    int64_t highest = 0, most = 0;
    for (uint32_t cell = from; cell < to; cell++) {
        if (cell < from + interval) continue;
        if (heap->high[cell - interval] > highest) highest = heap->high[cell - interval];
        int64_t fall = growth_rise(heap->low[cell], highest);
        if (fall > most) most = fall;
    }
    return most;
}

void growth_heap_read(const struct profile *profile, uint64_t start_ns, uint64_t end_ns,
                      struct growth_heap *heap) {
    heap->profile = profile;
    heap->start_ns = start_ns, heap->end_ns = end_ns;
    read_timeline(heap);
    heap->cells = cells_before_shutdown(heap);
    for (uint32_t cell = 0; cell < CELLS; cell++)
        heap->allocated[cell] = (double)allocated_until(profile, growth_heap_middle(heap, cell));
}
