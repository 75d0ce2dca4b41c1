// SPDX-License-Identifier: Apache-2.0
// One event of a log, whatever form it comes in.
#ifndef TOOL_EVENTS_EVENT_H
#define TOOL_EVENTS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/events.h"

// No block and no mapping is larger.
#define EVENT_BYTES_MOST ((uint64_t)1 << 56)

struct event {
    uint32_t flags;                   // kind and CAIRN_EVENT_…
    uint32_t cell;                    // of ALLOC, MAP, RESIDENT and TOUCHED
    uint64_t address;                 // of all but TIME
    uint64_t size;                    // of ALLOC, MAP, UNMAP, RESIDENT, and pages of TOUCHED
    uint64_t turn, alignment, taken;  // where the flags say so
    uint64_t ms;                      // since the start
    uint32_t slot, thread;
};

static inline enum cairn_event_kind event_kind(const struct event *event) {
    return (enum cairn_event_kind)(event->flags & CAIRN_EVENT_KIND_MASK);
}

// What the tool saw of pages: no event of the program.
static inline bool event_is_look(const struct event *event) {
    return event_kind(event) == CAIRN_EVENT_RESIDENT || event_kind(event) == CAIRN_EVENT_TOUCHED;
}

#endif
