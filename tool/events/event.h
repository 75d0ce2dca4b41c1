// SPDX-License-Identifier: Apache-2.0
// One event of a log, whatever form it comes in.
#ifndef TOOL_EVENTS_EVENT_H
#define TOOL_EVENTS_EVENT_H

#include <stdint.h>

#include "format/events.h"

// No block and no mapping is larger.
#define EVENT_BYTES_MOST ((uint64_t)1 << 56)

struct event {
    uint32_t flags;                   // kind and CAIRN_EVENT_…
    uint32_t cell;                    // of ALLOC, MAP and RESIDENT
    uint64_t address;                 // of all but TIME
    uint64_t size;                    // of ALLOC, MAP, UNMAP and RESIDENT
    uint64_t turn, alignment, taken;  // where the flags say so
    uint64_t ms;                      // since the start
    uint32_t slot, thread;
};

static inline enum cairn_event_kind event_kind(const struct event *event) {
    return (enum cairn_event_kind)(event->flags & CAIRN_EVENT_KIND_MASK);
}

#endif
