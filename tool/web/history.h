// SPDX-License-Identifier: Apache-2.0
// What every stack, and every thread, held at the snapshots that a recording kept, for the page.
//
// The live heap of a process as a few numbers, for the small line of its row.
#ifndef TOOL_WEB_HISTORY_H
#define TOOL_WEB_HISTORY_H

#include "tool/model/profile.h"
#include "tool/model/reader.h"
#include "tool/web/sink.h"

// A chunk "snapshots": [{"at_ns": 1, "reason": "mark", "label": "warm"}, ...], in the order of
// time, then for each the chunks "snapshot.bytes", by stack, and "snapshot.slots", by the slot of
// the thread that allocated, as changes of the one before. "slot.peak" and "slot.exit" are the same
// by slot for the peak and the end. Nothing without snapshots. False without memory.
bool history_put(struct sink *sink, const struct profile *profile, struct error *error);

#define LIFE_STEPS 48

// The highest of each of LIFE_STEPS equal stretches from the start of the process to its end, or
// to the last that is known of it. False if the recording has no time at all.
bool life_read(const struct recording *recording, uint64_t live[LIFE_STEPS]);

#endif
