// SPDX-License-Identifier: Apache-2.0
// The time at which the heap first reached its peak, by the timeline. The runtime knows when a peak
// was left, since it notes it only then; a heap that rose early and stayed would else have its peak
// at the end.
#ifndef TOOL_MODEL_REACHED_H
#define TOOL_MODEL_REACHED_H

#include "tool/model/reader.h"

// Returns when a total of `bytes`, which was left (or is there still) at `left_ns`, was first
// reached: the start of the time up to then in which no point of the timeline is lower, or later
// where a total that is counted rose by a batch since, or was a little lower at a peak before. A
// point's interval is the precision, in bytes a batch of the timeline where no lower peak says
// more.
uint64_t recording_reached_ns(const struct recording *recording, uint64_t left_ns, uint64_t bytes);

// Returns when the timeline first came within `error_bytes` of that total, if that was before
// `reached_ns` by more than a part of all the time, and 0 if it was not: what threads note late may
// then have been as high.
uint64_t recording_near_ns(const struct recording *recording, uint64_t reached_ns, uint64_t bytes,
                           uint64_t error_bytes);

// Returns the bytes that threads may have held back before they noted a total in the timeline.
int64_t recording_margin_bytes(const struct recording *recording, uint64_t peak_bytes);

#endif
