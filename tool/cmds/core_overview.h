// SPDX-License-Identifier: Apache-2.0
// `cairn report PID`, `report NAME` and `report CORE` without a recording: why it is so big, in one
// sentence, and what leads to it: resident memory by kind, types, owners and waste, the
// largest of each.
#ifndef TOOL_CMDS_CORE_OVERVIEW_H
#define TOOL_CMDS_CORE_OVERVIEW_H

#include <sys/types.h>

#include "tool/base/json.h"
#include "tool/query/arguments.h"
#include "tool/query/views.h"

// Returns true if the word means a process that is not being recorded.
bool core_overview_is_possible(const char *word);

// Answers a question without a view, filter or form that a recording alone has, or for what is
// resident, of such a process or a core without a recording. False: it is not that; else `*status`
// is what to end with.
bool core_overview_answers(const struct command_args *args, const struct request *request,
                           int *status);

// Prints what Go's runtime keeps beside malloc's heap in a process that is being recorded; nothing
// if there is no Go in it.
void core_overview_print_go(pid_t pid);
// Puts it as members of the object that is open.
void core_overview_put_go(struct json *json, pid_t pid);

#endif
