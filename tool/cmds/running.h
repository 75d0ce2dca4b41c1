// SPDX-License-Identifier: Apache-2.0
// A running process, recorded or not, as the user named it.
#ifndef TOOL_CMDS_RUNNING_H
#define TOOL_CMDS_RUNNING_H

#include <stdbool.h>
#include <sys/types.h>

#include "tool/base/error.h"

bool running_is_number(const char *text);

// `which`: its number, or the name of the only process with that program, first argument, or name
// that it gave itself. Whether there is a process with the number is not looked at.
bool running_find(const char *which, pid_t *pid, struct error *error);

#endif
