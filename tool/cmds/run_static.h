// SPDX-License-Identifier: Apache-2.0
// cairn run of a static program: what of the command cannot be had there, and its start.
#ifndef TOOL_CMDS_RUN_STATIC_H
#define TOOL_CMDS_RUN_STATIC_H

#include <limits.h>

#include "tool/query/arguments.h"
#include "tool/watch/job.h"
#include "tool/watch/program.h"

struct run_static {
    const struct program *program;
    bool is_anyway;          // --ignore-checks: without the library, if it must be
    char library[PATH_MAX];  // libcairn-bare.so
    struct error problem;    // why it runs without it; ""
};

// Finds the library. False, with the reason, if the command asks for what cannot be had.
bool run_static_prepare(struct run_static *run, const struct command_args *args,
                        const struct program *program, struct error *error);

// Between launch_fork and launch_go, which then records it.
bool run_static_hold(struct run_static *run, struct launched *launched, struct error *error);

#endif
