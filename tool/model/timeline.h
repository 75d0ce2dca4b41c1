// SPDX-License-Identifier: Apache-2.0
// The timeline of a recording as bounds: between two times the live heap was not below `low`
// and not above `high`.
//
// A point has the lowest and highest total that was noted in its interval. The heap also had the
// value that the interval began with, and threads hold a little back before they note it, so the
// bounds are widened by both; they are never above the exact peak. An interval without a note goes
// on with the last value.
#ifndef TOOL_MODEL_TIMELINE_H
#define TOOL_MODEL_TIMELINE_H

#include "tool/model/estimate.h"
#include "tool/model/reader.h"

struct timeline_span {
    uint64_t start_ns, end_ns;  // since the start of the process
    uint64_t low_bytes, high_bytes;
};

struct timeline {
    const struct recording *recording;
    const struct cairn_heap_points *heap;  // whose points these are; NULL: malloc's heap
    uint64_t point_ns, end_ns, peak_bytes, peak_ns;
    struct estimate peak_estimate;
    bool is_fork;           // that inherited blocks
    uint64_t copied_bytes;  // of a fork: what it inherited
    int64_t carried_bytes;  // live when the next interval begins
    int64_t margin_bytes;   // what may be live or gone without a note
    size_t next;            // point
    bool is_over;
};

// `timeline_next` hands out the spans from the start of the process to its end without a gap; a
// process that still runs has a last span to the end of all time (UINT64_MAX).
void timeline_start(struct timeline *timeline, const struct recording *recording);
// The same of an allocator by name with this peak; each of its values was noted. `heap` outlives
// the timeline.
void timeline_start_heap(struct timeline *timeline, const struct recording *recording,
                         const struct cairn_heap_points *heap, int64_t peak_bytes,
                         uint64_t peak_ns);
bool timeline_next(struct timeline *timeline, struct timeline_span *span);

// What was live at a time, as it was noted last in its interval or before; false: nothing was.
bool timeline_live_at(const struct recording *recording, uint64_t at_ns, int64_t *bytes);

#endif
