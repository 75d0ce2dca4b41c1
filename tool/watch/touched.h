// SPDX-License-Identifier: Apache-2.0
// How much of the blocks of each stack lies on resident pages now: of those of a page and more, as
// pages of smaller ones are shared. For logs that are replayed (cairn replay --touch recorded).
#ifndef TOOL_WATCH_TOUCHED_H
#define TOOL_WATCH_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/array.h"

struct touched_cell {
    uint32_t cell;
    uint64_t bytes, resident_bytes;  // of the blocks that were looked at
};

struct touched {
    ARRAY(struct touched_cell) cells;  // ascending
};

// Of very many blocks some are looked at. False if the process may not be read, or without memory.
bool touched_read(pid_t pid, const struct cairn_header *header, struct touched *touched);
void touched_free(struct touched *touched);

#endif
