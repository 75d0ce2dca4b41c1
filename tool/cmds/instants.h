// SPDX-License-Identifier: Apache-2.0
// --at, --between and --since: what stacks held at a moment, what they hold more at a later one,
// and what was allocated since a mark and still lives, as the measure "then".
#ifndef TOOL_CMDS_INSTANTS_H
#define TOOL_CMDS_INSTANTS_H

#include "tool/cmds/commands.h"
#include "tool/cmds/opened.h"

enum instants_kind { INSTANTS_NONE, INSTANTS_AT, INSTANTS_BETWEEN, INSTANTS_SINCE };

struct instants_request {
    enum instants_kind kind;
    const char *text;  // of the option
};

// Reads the options; one of them at most. False with an error: wrong use.
bool instants_read(const struct command_args *args, struct instants_request *request,
                   struct error *error);

// Sets what the stacks of `opened` held then, and `opened->then`, which says when that was. Before
// stacks are left out.
bool instants_apply(const struct instants_request *request, struct opened *opened,
                    struct error *error);

#endif
