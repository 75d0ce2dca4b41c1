// SPDX-License-Identifier: Apache-2.0
// When snapshots are taken (format/snapshots.h): after so much was allocated and freed, at new
// highs of the heap, when it has fallen by a quarter, at the end, and when the program asks. The
// tool takes those that a user asks for.
#ifndef RUNTIME_RECORD_SNAPSHOTS_H
#define RUNTIME_RECORD_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/region.h"

// The recording's table; `every_bytes` 0: none is taken by itself.
void snapshots_open(struct region snapshots, struct cairn_header *header, uint64_t every_bytes);

// The totals were published: the heap holds so much.
void snapshots_look(int64_t live_bytes, int64_t live_blocks);

// Takes one now. False: no room, or somebody else is taking one. A label may be NULL.
bool snapshots_take(enum cairn_snapshot_reason reason, const char *label);
// The same in a signal handler, whatever it interrupted; false also if a snapshot is being taken.
bool snapshots_take_in_handler(enum cairn_snapshot_reason reason, int signal);

// The same for a heap by name (runtime/api/heap_stacks.h), and when the next one is due if it holds
// `live_bytes` now and so much was allocated and freed of it: values that are never reached where
// none is taken by itself.
bool snapshots_take_for_heap(enum cairn_snapshot_reason reason, uint32_t heap);
void snapshots_pace(uint64_t live_bytes, uint64_t churn_bytes, uint64_t *next_high_bytes,
                    uint64_t *next_churn_bytes);

// So much was allocated and freed, as far as threads have published it, that one is due.
bool snapshots_is_due(void);

// A forked child keeps the marks of its parent: blocks of later generations are younger.
void snapshots_inherit(const struct cairn_header *parent);

#endif
