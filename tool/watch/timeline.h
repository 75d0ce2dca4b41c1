// SPDX-License-Identifier: Apache-2.0
// Adds to the timeline from outside. A thread whose live total does not move notes no point,
// however much it allocates and frees: each time the tool checks the process, it writes the sums of
// all threads into the current point. So rates are known to a tenth of a second, and the program
// pays nothing.
#ifndef TOOL_WATCH_TIMELINE_H
#define TOOL_WATCH_TIMELINE_H

#include "tool/watch/memory.h"

// `now_ns`: CLOCK_MONOTONIC. What the process wrote is not believed: a note less at worst.
void timeline_note_totals(const struct memory *memory, uint64_t now_ns);

#endif
