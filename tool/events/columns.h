// SPDX-License-Identifier: Apache-2.0
// The events of a frame as columns of numbers (format/event_file.h), written and read.
#ifndef TOOL_EVENTS_COLUMNS_H
#define TOOL_EVENTS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/event_file.h"
#include "tool/events/coder.h"

// A plane that is being written; it has room for what a chunk can give.
struct plane {
    uint8_t bytes[CAIRN_EVENT_COLUMN_MOST];
    size_t count;
};

struct columns {
    struct coder coder;
    struct plane planes[CAIRN_COLUMNS][CAIRN_EVENT_PLANES];
    uint64_t end_ms;
    uint32_t event_count;
    uint32_t sure_count;  // so many more events have room
};

void columns_begin(struct columns *columns, uint64_t start_ms);
// False: there is no room for it.
bool columns_add(struct columns *columns, const struct event *event);

struct columns_reader {
    struct coder coder;
    struct plane_reader {
        const uint8_t *at, *end;
    } planes[CAIRN_COLUMNS][CAIRN_EVENT_PLANES];
    uint32_t slot, thread, left;
};

// `frame` has been checked, and `bytes` has its planes, one after the other, of plain_bytes each.
void columns_read(struct columns_reader *reader, const struct cairn_event_frame *frame,
                  const uint8_t *bytes, bool is_plain);
// The next event, 1; 0: there is none, -1: the columns are damaged. Times are no events here.
int columns_next(struct columns_reader *reader, struct event *event);

#endif
