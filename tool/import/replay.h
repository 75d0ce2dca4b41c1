// SPDX-License-Identifier: Apache-2.0
// Single events, as tracers write them, added up: what was allocated from each stack, what was live
// at the end and when the heap was at its peak. The events may come in any order: they are gone
// through by their times. What does not fit together is left out and counted: frees of blocks from
// before the trace, and blocks whose free was missed, found when their address comes again.
#ifndef TOOL_IMPORT_REPLAY_H
#define TOOL_IMPORT_REPLAY_H

#include "tool/import/import.h"

struct replay_event {
    uint64_t at_ns;
    uint64_t block, bytes;  // block 0: only `old_block` is freed
    uint64_t old_block;     // freed in the same moment; 0: none
    uint32_t node, order;   // filled in: the stack that allocates, and the place in the trace
};

struct replay {
    struct imported *imported;
    ARRAY(struct replay_event) events;
    ARRAY(uint32_t) places;  // of the stack that is being read, innermost first
    uint64_t pid;            // 0: not known yet
    uint64_t lost_count;     // events that the tracer or its reader lost
    const char *lacks;       // what such a file never says; NULL: threads, lines
};

void replay_free(struct replay *replay);

// A line of a stack as perf writes it: "55d0c3 main+0x2a (/usr/bin/prog)". Frames of libcairn.so
// are left out. False: it is none, or no memory.
bool replay_frame(struct replay *replay, char *line);

// The event, allocating from the stack read since the last one. False without memory.
bool replay_add(struct replay *replay, const struct replay_event *event);

// The same from a node of the tree.
bool replay_add_at(struct replay *replay, const struct replay_event *event, uint32_t node);

// Adds everything up and fills what the imported lacks.
bool replay_finish(struct replay *replay, struct error *error);

#endif
