// SPDX-License-Identifier: Apache-2.0
// The timeline: what was live in each interval of time, in a fixed number of points.
//
// A point is noted whenever a thread publishes its total, that is each time the total has moved by
// a batch (totals.h), not per event. The first interval is 16 us, so that a run of milliseconds has
// a shape; it doubles when the points are used up, so that a week fits too.
#ifndef RUNTIME_POINTS_H
#define RUNTIME_POINTS_H

#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/region.h"

// Begins the timeline in `region`. Without memory there will be none.
void points_open(struct region region, struct cairn_totals *totals);

// The live total is `bytes` in `blocks`, `now_ns` after the start. Any thread; never waits.
void points_note(int64_t bytes, int64_t blocks, uint64_t now_ns);

#endif
