// SPDX-License-Identifier: Apache-2.0
// `cairn report --by peak,exit,calls,temporary`: one list for each, in one print.
#ifndef TOOL_CMDS_REPORT_RANKINGS_H
#define TOOL_CMDS_REPORT_RANKINGS_H

#include <stdbool.h>

#include "tool/query/arguments.h"

// Returns true if several measures are given.
bool rankings_are_asked(const struct command_args *args);

// Runs the command once for each of them and returns the status to end with.
int rankings_report(const struct command_args *args);

#endif
