// SPDX-License-Identifier: Apache-2.0
// cairn history bisect: which of the commits that were not recorded made a step.
#ifndef TOOL_CMDS_HISTORY_BISECT_H
#define TOOL_CMDS_HISTORY_BISECT_H

#include "tool/query/arguments.h"

int history_bisect(const struct command_args *args);

#endif
