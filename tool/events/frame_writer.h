// SPDX-License-Identifier: Apache-2.0
// Writes the file of an event log (format/event_file.h), frame by frame, as chunks come. A frame is
// in the file as a whole or not at all: one that the disk has no room for is taken away again, and
// counted.
#ifndef TOOL_EVENTS_FRAME_WRITER_H
#define TOOL_EVENTS_FRAME_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/event_file.h"
#include "format/events.h"
#include "tool/base/error.h"

struct frame_writer;

// Makes the file; an older one there is replaced. NULL: it could not be made.
struct frame_writer *frame_writer_open(const char *path, const struct cairn_event_file *header,
                                       struct error *error);

// A chunk and its words, as a process wrote them. False: it was lost, and is counted.
bool frame_writer_add(struct frame_writer *writer, const struct cairn_events_chunk *chunk,
                      const uint64_t *words, size_t word_count);

// The end, with what was lost before it came here; closes the file. False, with why: something was
// lost on the way to it. `events` may be NULL.
bool frame_writer_close(struct frame_writer *writer, const struct cairn_events *events,
                        struct error *error);

// Events that were written.
uint64_t frame_writer_events(const struct frame_writer *writer);

#endif
