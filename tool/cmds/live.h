// SPDX-License-Identifier: Apache-2.0
// The recording of a process that is being recorded, by its pid.
#ifndef TOOL_CMDS_LIVE_H
#define TOOL_CMDS_LIVE_H

#include <limits.h>
#include <stdbool.h>

#include "tool/base/error.h"

// The path under which the recording can be read now: a file, or the memory that `cairn run` holds.
// False if there is no such process, if it is not recorded, or if it belongs to somebody else.
bool live_find(const char *pid, char path[PATH_MAX], struct error *error);

#endif
