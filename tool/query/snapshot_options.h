// SPDX-License-Identifier: Apache-2.0
// --at, --between and --since: what stacks held at a moment, what they hold more at a later one,
// and what was allocated since a mark and still lives, as the measure "at".
#ifndef TOOL_QUERY_SNAPSHOT_OPTIONS_H
#define TOOL_QUERY_SNAPSHOT_OPTIONS_H

#include "tool/query/arguments.h"
#include "tool/query/merged.h"

enum snapshot_wanted {
    SNAPSHOT_WANTED_NONE,
    SNAPSHOT_WANTED_AT,
    SNAPSHOT_WANTED_BETWEEN,
    SNAPSHOT_WANTED_SINCE
};

struct snapshot_request {
    enum snapshot_wanted kind;
    const char *text;  // of the option
};

// Reads the options; one of them at most. False with an error: wrong use.
bool snapshot_options_read(const struct command_args *args, struct snapshot_request *request,
                           struct error *error);

// Sets what the stacks of `opened` held then, and `opened->at_text`, which says when that was.
// Before stacks are left out.
bool snapshot_options_apply(const struct snapshot_request *request, struct opened *opened,
                            struct error *error);

#endif
