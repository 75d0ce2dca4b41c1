// SPDX-License-Identifier: Apache-2.0
// A process that `cairn top` looks at: its stacks, their names, and what can be asked of it.
#ifndef TOOL_QUERY_TOP_SESSION_H
#define TOOL_QUERY_TOP_SESSION_H

#include "tool/query/live.h"
#include "tool/query/names.h"
#include "tool/tui/top.h"

struct top_session {
    struct live live;
    struct names *names;
    struct frame_names frame_names;
    struct live_process process;
    ARRAY(uint8_t) are_named;  // by stack: its names were looked for
    uint64_t next_names_ns;    // CLOCK_MONOTONIC: not to be looked for by themselves before
    char program[PATH_MAX];    // that it ran when it was opened
    char over[64];
    bool is_open;
};

// The functions of the screen (tool/tui/top.h); `context` is a session.
extern const struct top_host top_session_host;

// Opens the process and takes the first look. On failure what was open stays as it was.
bool top_session_open(struct top_session *session, struct top *top,
                      const struct live_process *process, struct error *error);
void top_session_close(struct top_session *session);

// What is being recorded, with its figures. False without memory.
bool top_session_list(struct top *top, struct error *error);

#endif
