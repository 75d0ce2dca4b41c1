// SPDX-License-Identifier: Apache-2.0
// The views heap and pages: of a process, which is stopped for a moment, or of a core dump.
#ifndef TOOL_CMDS_HEAP_VIEWS_H
#define TOOL_CMDS_HEAP_VIEWS_H

#include "tool/base/error.h"

struct command_args;
struct request;

// `word` is a pid or a core dump; NULL: nothing was named.
bool heap_views_report(const char *word, const struct request *request, struct error *error);

// Refuses options that these views have no use for.
bool heap_views_check(const struct command_args *args, struct error *error);

#endif
