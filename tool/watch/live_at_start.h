// SPDX-License-Identifier: Apache-2.0
// The blocks that a running process has, from its live map (format/live_map.h), without stopping
// it: for an event log that begins in its middle. The process changes the map meanwhile. What it
// allocates and frees while this reads is in its log, which puts right what is found here.
#ifndef TOOL_WATCH_LIVE_AT_START_H
#define TOOL_WATCH_LIVE_AT_START_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/array.h"
#include "tool/events/frame_writer.h"

struct live_found {
    uint64_t address, size;
    uint32_t cell;
};

struct live_at_start {
    ARRAY(struct live_found) blocks;
};

// False if the process may not be read, or without memory.
bool live_at_start_read(pid_t pid, const struct cairn_header *header, struct live_at_start *live);
// As the first events of a log, in frames of a slot of their own, of which `number` is the next.
void live_at_start_write(const struct live_at_start *live, struct frame_writer *writer,
                         uint64_t start_ms, uint32_t *number);
void live_at_start_free(struct live_at_start *live);

#endif
