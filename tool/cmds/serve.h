// SPDX-License-Identifier: Apache-2.0
// Serving, for `cairn serve` and `cairn open PID`.
#ifndef TOOL_CMDS_SERVE_H
#define TOOL_CMDS_SERVE_H

#include "tool/query/arguments.h"

// Serves one process at a free port of this machine alone, until SIGINT; `show` gets the page's
// address. Returns the command's status.
int serve_process(const char *which, void (*show)(const char *url));

#endif
