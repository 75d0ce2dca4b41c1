// SPDX-License-Identifier: Apache-2.0
// A process that `cairn top` looks at: its stacks, their names, and what can be asked of it.
#ifndef TOOL_CMDS_TOPPING_H
#define TOOL_CMDS_TOPPING_H

#include "tool/cmds/live.h"
#include "tool/cmds/names.h"
#include "tool/tui/top.h"

struct topping {
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

// The functions of the screen (tool/tui/top.h); `context` is a topping.
extern const struct top_host topping_host;

// Opens the process and takes the first look. On failure what was open stays as it was.
bool topping_open(struct topping *topping, struct top *top, const struct live_process *process,
                  struct error *error);
void topping_close(struct topping *topping);

// What is being recorded, with its figures. False without memory.
bool topping_list(struct top *top, struct error *error);

#endif
