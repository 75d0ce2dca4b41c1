// SPDX-License-Identifier: Apache-2.0
// What every stack, and every thread, held at the snapshots that a recording kept, for the page.
#ifndef TOOL_WEB_HISTORY_H
#define TOOL_WEB_HISTORY_H

#include "tool/model/profile.h"
#include "tool/web/sink.h"

// A chunk "snapshots": [{"at_ns": 1, "reason": "mark", "label": "warm"}, ...], in the order of
// time, then for each the chunks "snapshot.bytes", by stack, and "snapshot.slots", by the slot of
// the thread that allocated, as changes of the one before. "slot.peak" and "slot.exit" are the same
// by slot for the peak and the end. Nothing without snapshots. False without memory.
bool history_put(struct sink *sink, const struct profile *profile, struct error *error);

#endif
