// SPDX-License-Identifier: Apache-2.0
#include "tool/model/timeline.h"

#include "tool/model/figures.h"
#include "tool/model/reached.h"

// No process has more than the address space: larger numbers are damage, and sums stay sane.
static const int64_t bytes_max = (int64_t)1 << 47;

static int64_t clamp(int64_t bytes) {
    if (bytes < 0) return 0;
    return bytes < bytes_max ? bytes : bytes_max;
}

static int64_t inherited_bytes(const struct recording *recording) {
    struct cairn_thread thread;
    for (size_t i = 0; i < FIGURES_THREADS_MAX && recording_thread(recording, i, &thread); i++)
        if (figures_is_inherited(&thread)) return clamp(thread.net_bytes);
    return 0;
}

void timeline_start(struct timeline *timeline, const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    struct figures figures = figures_of(recording);
    *timeline = (struct timeline){.recording = recording,
                                  .point_ns = header->totals.point_ns,
                                  .end_ns = header->end_ns ? header->end_ns : UINT64_MAX,
                                  .peak_bytes = (uint64_t)clamp((int64_t)figures.peak_bytes),
                                  .peak_ns = figures.peak_ns,
                                  .peak_estimate = figures.peak_estimate,
                                  .is_fork = figures.inherited_blocks != 0,
                                  .copied_bytes = header->forked_from ? figures.inherited_bytes : 0,
                                  .carried_bytes = inherited_bytes(recording)};
    timeline->margin_bytes = recording_margin_bytes(recording, timeline->peak_bytes);
}

void timeline_start_heap(struct timeline *timeline, const struct recording *recording,
                         const struct cairn_heap_points *heap, int64_t peak_bytes,
                         uint64_t peak_ns) {
    const uint64_t end_ns = recording->header.end_ns;
    *timeline = (struct timeline){.recording = recording,
                                  .heap = heap,
                                  .point_ns = heap->point_ns,
                                  .end_ns = end_ns ? end_ns : UINT64_MAX,
                                  .peak_bytes = (uint64_t)clamp(peak_bytes),
                                  .peak_ns = peak_ns};
}

static size_t point_count(const struct timeline *timeline) {
    return timeline->heap ? CAIRN_HEAP_POINT_COUNT
                          : recording_count(timeline->recording, CAIRN_SECTION_POINTS);
}

static bool point_read(const struct timeline *timeline, size_t index, struct cairn_point *point) {
    if (!timeline->heap) return recording_point(timeline->recording, index, point);
    if (index < CAIRN_HEAP_POINT_COUNT) *point = timeline->heap->points[index];
    return index < CAIRN_HEAP_POINT_COUNT;
}

static void set_bounds(const struct timeline *timeline, int64_t low, int64_t high,
                       struct timeline_span *span) {
    int64_t peak = (int64_t)timeline->peak_bytes;
    low = clamp(low - timeline->margin_bytes);
    high = clamp(high + timeline->margin_bytes);
    bool has_peak = timeline->peak_ns >= span->start_ns && timeline->peak_ns < span->end_ns;
    if (high > peak || has_peak) high = peak;
    span->low_bytes = (uint64_t)(low < high ? low : high);
    span->high_bytes = (uint64_t)high;
}

// The next point with a note; `count` without one.
static size_t next_used(const struct timeline *timeline, size_t from, struct cairn_point *point) {
    while (point_read(timeline, from, point) && !point->is_used) from++;
    return from;
}

static uint64_t start_of(const struct timeline *timeline, size_t index) {
    uint64_t start;
    bool is_beyond = __builtin_mul_overflow((uint64_t)index, timeline->point_ns, &start);
    return is_beyond || start > timeline->end_ns ? timeline->end_ns : start;
}

bool timeline_next(struct timeline *timeline, struct timeline_span *span) {
    struct cairn_point point;
    if (timeline->is_over) return false;
    int64_t carried = timeline->carried_bytes;
    size_t count = point_count(timeline);
    size_t used = timeline->point_ns ? next_used(timeline, timeline->next, &point) : count;
    span->start_ns = timeline->next ? start_of(timeline, timeline->next) : 0;
    if (used > timeline->next || used >= count) {  // silence, up to the next note or to the end
        span->end_ns = used < count ? start_of(timeline, used) : timeline->end_ns;
        timeline->next = used;
        timeline->is_over = used >= count || span->end_ns >= timeline->end_ns;
        set_bounds(timeline, carried, carried, span);
        return true;
    }
    span->end_ns = start_of(timeline, used + 1);
    int64_t low = clamp(point.min_bytes), high = clamp(point.max_bytes);
    set_bounds(timeline, low < carried ? low : carried, high > carried ? high : carried, span);
    timeline->carried_bytes = clamp(point.last_bytes);
    timeline->next = used + 1;
    timeline->is_over = span->end_ns >= timeline->end_ns;
    return true;
}

bool timeline_live_at(const struct recording *recording, uint64_t at_ns, int64_t *bytes) {
    struct cairn_point point;
    uint64_t point_ns = recording->header.totals.point_ns;
    size_t count = recording_count(recording, CAIRN_SECTION_POINTS);
    uint64_t index = point_ns ? at_ns / point_ns + 1 : 0;
    if (index > count) index = count;
    while (index-- > 0) {
        if (!recording_point(recording, (size_t)index, &point) || !point.is_used) continue;
        *bytes = clamp(point.last_bytes);
        return true;
    }
    return false;
}
