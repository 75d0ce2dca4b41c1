// SPDX-License-Identifier: Apache-2.0
// What `cairn replay` and `cairn whatif` share: the log as calls, and the variables given.
#ifndef TOOL_CMDS_REPLAY_OPTIONS_H
#define TOOL_CMDS_REPLAY_OPTIONS_H

#include "tool/query/arguments.h"
#include "tool/render/terminal.h"
#include "tool/replay/runner.h"

struct replay_order {
    struct script_options options;
    struct runner_setting setting;  // the variables that were given; no library
    size_t variable_count;
    bool is_partial;
    const char *log;
};

bool replay_order_read(const struct command_args *args, struct replay_order *order,
                       struct error *error);

// The calls of the log; false also if the log is not complete, unless that is wanted.
bool replay_order_open(const struct replay_order *order, struct script *script,
                       struct error *error);

// Under what is printed: what was assumed, and what is not in the replay.
void replay_print_notes(const struct terminal *terminal, const struct replay_order *order,
                        const struct script *script);

#endif
