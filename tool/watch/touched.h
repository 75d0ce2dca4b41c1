// SPDX-License-Identifier: Apache-2.0
// How many whole pages of some blocks are resident now: of those of a page and more, as pages of
// smaller ones are shared. For logs that are replayed (cairn replay --touch recorded).
#ifndef TOOL_WATCH_TOUCHED_H
#define TOOL_WATCH_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/array.h"
#include "tool/events/frame_writer.h"

struct touched_block {
    uint64_t address, pages;
    uint32_t cell;
};

struct touched {
    ARRAY(struct touched_block) blocks;  // ascending
};

// When a process' pages were looked at, and are to be again. All 0: never so far.
struct touched_looks {
    int64_t live_bytes;  // at the last look
    uint64_t pause_ns;
    uint64_t next_ns;  // not before that
};
// With a heap of 1 MiB or more: once it grew by a quarter, and after pauses that double since then,
// as blocks are written to later than they were allocated. Looks take a twentieth of the time at
// most. `is_last`: the process ends, and waits; it does unless looks take long. A look follows.
bool touched_is_due(struct touched_looks *looks, int64_t live_bytes, uint64_t now_ns, bool is_last);
void touched_was_read(struct touched_looks *looks, uint64_t begin_ns, uint64_t end_ns);

// Of many blocks of a cell some are looked at. False if the process may not be read, or without
// memory.
bool touched_read(pid_t pid, const struct cairn_header *header, struct touched *touched);
// As events of a log, at `ms`, in frames of the slot that no thread has: `number` is the next.
void touched_write(const struct touched *touched, struct frame_writer *writer, uint64_t ms,
                   uint32_t *number);
void touched_free(struct touched *touched);

#endif
