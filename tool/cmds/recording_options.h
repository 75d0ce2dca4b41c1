// SPDX-License-Identifier: Apache-2.0
// The options that say how a program is recorded, which `run` and `env` share, as variables of the
// program's environment.
#ifndef TOOL_CMDS_RECORDING_OPTIONS_H
#define TOOL_CMDS_RECORDING_OPTIONS_H

#include "tool/cmds/commands.h"
#include "tool/model/measure.h"
#include "tool/watch/job.h"

enum { RECORDING_TEXT_BYTES = 24 };

struct recording_options {
    char texts[LAUNCH_RECORDING_VARIABLES][RECORDING_TEXT_BYTES];
    struct launch_variable variables[LAUNCH_RECORDING_VARIABLES];
    size_t count;
    bool is_for_python;  // its objects and frames were asked for
    enum measure by;     // what the summary lists places by
};

// The variables of the options that were given, into `launch` as well, which then points into
// `options`. False after an error was filled.
bool recording_options_read(const struct command_args *args, struct recording_options *options,
                            struct launch *launch, struct error *error);

#endif
