// SPDX-License-Identifier: Apache-2.0
// The timeline: what was live in each interval of time, in a limited number of points.
//
// A point is noted whenever a thread publishes its total, that is each time the total has moved by
// a batch (totals.h), not per event; if there are several threads, not each time (timeline_has).
// The first interval is 16 us, so that a run of milliseconds has a shape; it doubles when the
// points are used up, so that a week fits too. A small heap has fewer points than a large one.
#ifndef RUNTIME_RECORD_TIMELINE_H
#define RUNTIME_RECORD_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/region.h"

enum { POINT_FIRST_NS = 1 << 14 };  // the first interval

// Two neighbours become one; the second one's last values count if it has any. `into` may be one.
void point_merge(struct cairn_point *into, const struct cairn_point *first,
                 const struct cairn_point *second);

// Begins the timeline in `region`. Without memory there will be none.
void timeline_open(struct region region, struct cairn_totals *totals);

// What a thread knows of the point that it noted last, so that it need not write to it each time:
// all threads share it.
struct point_seen {
    uint64_t number, interval_ns;
    int64_t min_bytes, max_bytes;  // that this thread noted there
    uint32_t left_out;             // notes since then that the point did without
};

// True if a note of `bytes`, `now_ns` after the start, would tell the point nothing but a newer
// last value, and it has had one of this thread's last few. Counts as one of them.
bool timeline_has(struct point_seen *seen, int64_t bytes, uint64_t now_ns);

// The thread noted nothing for a tenth of a second.
bool timeline_is_due(const struct point_seen *seen, uint64_t now_ns);

// The live total is `bytes` in `blocks`, `now_ns` after the start. Any thread; never waits.
void timeline_note(struct point_seen *seen, int64_t bytes, int64_t blocks, uint64_t now_ns);

#endif
