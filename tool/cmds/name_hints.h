// SPDX-License-Identifier: Apache-2.0
// What to do about frames without a name.
#ifndef TOOL_CMDS_NAME_HINTS_H
#define TOOL_CMDS_NAME_HINTS_H

#include <stdio.h>

#include "tool/cmds/opened.h"

// A line for each of the modules with the most frames without a name: what they are, why, and which
// package or option would name them. Also why names of other modules are doubtful.
void name_hints_print(FILE *out, const struct opened *opened);

#endif
