// SPDX-License-Identifier: Apache-2.0
// The block that pins the end of an arena, by the stack that asked for it: of a process that is
// recorded.
#ifndef TOOL_CMDS_CORE_REMEDIES_PIN_H
#define TOOL_CMDS_CORE_REMEDIES_PIN_H

#include "tool/glibc/giveback.h"
#include "tool/query/heap_views.h"
#include "tool/query/merged.h"
#include "tool/render/site.h"

struct pin_origin {
    bool is_known;  // its stack; else nothing is open
    uint64_t address;
    uint64_t bytes;         // of its chunk
    struct opened own;      // what it opened itself ...
    struct opened *opened;  // ... or what was open
    struct frame_names names;
    struct site_list sites;  // one
};

// Finds it in what was looked at, whose recording is open, or in a process that goes on. It stays
// unknown if the process is not recorded, or as a sample.
void pin_origin_of_look(const struct heap_look *look, struct opened *opened,
                        const struct arena_free *arena, struct pin_origin *origin);
void pin_origin_of_process(pid_t pid, const struct arena_free *arena, struct pin_origin *origin);
void pin_origin_close(struct pin_origin *origin);

// Prints a line "block: 2.0 KiB, by FUNCTION ..." below its remedy; nothing if it is unknown.
void pin_origin_print(const struct pin_origin *origin, const struct terminal *terminal);

// Fills in the frames of the stack, innermost first; NULL if it is unknown, or without memory.
const struct frame_list *pin_origin_frames(const struct pin_origin *origin,
                                           struct frame_list *frames);

#endif
