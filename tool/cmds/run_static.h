// SPDX-License-Identifier: Apache-2.0
// cairn run of static programs: what of the command cannot be had there, the start of the one that
// was named, and of those that recorded processes start.
#ifndef TOOL_CMDS_RUN_STATIC_H
#define TOOL_CMDS_RUN_STATIC_H

#include <limits.h>

#include "tool/attach/static_held.h"
#include "tool/query/arguments.h"
#include "tool/watch/job.h"
#include "tool/watch/program.h"
#include "tool/watch/watch.h"

struct run_static {
    const struct program *program;
    bool is_anyway;          // --ignore-checks: without the library, if it must be
    char library[PATH_MAX];  // libcairn-bare.so
    struct error problem;    // why it runs without it; ""
    struct watch *watch;
    struct static_holds holds;
};

// Finds the library. False, with the reason, if the command asks for what cannot be had.
bool run_static_prepare(struct run_static *run, const struct command_args *args,
                        const struct program *program, struct error *error);

// Between launch_fork and launch_go, which then records it.
bool run_static_hold(struct run_static *run, struct launched *launched, struct error *error);

// Records those that are started later, if the command asks for nothing that cannot be had of them,
// from the start of the watch on.
void run_static_follow(struct run_static *run, const struct command_args *args, struct watch *watch,
                       struct job *job);
// `variables`: those of the run.
void run_static_tell(struct run_static *run, const char *variables);
void run_static_close(struct run_static *run);

#endif
