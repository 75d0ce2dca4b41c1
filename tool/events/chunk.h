// SPDX-License-Identifier: Apache-2.0
// The words of a chunk as the process wrote them (format/events.h). They may be anything.
#ifndef TOOL_EVENTS_CHUNK_H
#define TOOL_EVENTS_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/events/event.h"

struct chunk_reader {
    const uint64_t *words;  // may be written meanwhile
    size_t count, at;
    uint64_t ms;
    bool is_damaged;  // it ended where no event can be
};

// `words` of a chunk whose first event is so late.
struct chunk_reader chunk_read(const uint64_t *words, size_t count, uint64_t start_ms);

// The next event; false: there is none.
bool chunk_next(struct chunk_reader *reader, struct event *event);

// Whether an event can have such flags, whoever says so.
bool event_is_possible(uint32_t flags);

#endif
