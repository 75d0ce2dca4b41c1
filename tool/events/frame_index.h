// SPDX-License-Identifier: Apache-2.0
// Which frames the file of a log has, by thread slot, and one of them read.
#ifndef TOOL_EVENTS_FRAME_INDEX_H
#define TOOL_EVENTS_FRAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/event_file.h"
#include "tool/base/error.h"
#include "tool/events/columns.h"

// What is known of a log as a whole.
struct event_log_facts {
    struct cairn_event_file file;
    struct cairn_event_end end;  // of a log that was cut, made of what is there
    uint64_t file_bytes;
    uint64_t event_count;    // in whole frames
    uint64_t missing_count;  // chunks that are not in the file although later ones are
    uint64_t end_ms;
    bool is_cut;  // it ends without its end
};

struct frame_place {
    uint64_t at;  // in the file
    uint64_t end_ms;
    uint32_t slot, number, event_count;
};

struct frame_index {
    int file;
    struct event_log_facts facts;
    struct frame_place *frames;  // by slot, then in order
    size_t count, room;
};

bool frame_index_open(const char *path, struct frame_index *index, struct error *error);
void frame_index_close(struct frame_index *index);

// A frame's columns, uncompressed.
struct frame_columns {
    struct columns_reader reader;
    uint8_t *bytes;
};
bool frame_index_read(const struct frame_index *index, const struct frame_place *place,
                      struct frame_columns *columns, struct error *error);
void frame_columns_free(struct frame_columns *columns);

#endif
