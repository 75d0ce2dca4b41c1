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

// Of many blocks of a cell some are looked at. False if the process may not be read, or without
// memory.
bool touched_read(pid_t pid, const struct cairn_header *header, struct touched *touched);
// As events of a log, at `ms`, in frames of the slot that no thread has: `number` is the next.
void touched_write(const struct touched *touched, struct frame_writer *writer, uint64_t ms,
                   uint32_t *number);
void touched_free(struct touched *touched);

#endif
