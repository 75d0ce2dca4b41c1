// SPDX-License-Identifier: Apache-2.0
// `cairn report PID` and `report NAME` of a process that is not being recorded: why it is so big,
// in one sentence, and what leads to it: resident memory by kind, types, owners and waste, the
// largest of each.
#ifndef TOOL_CMDS_CORE_OVERVIEW_H
#define TOOL_CMDS_CORE_OVERVIEW_H

#include "tool/query/views.h"

// Returns true if the word means a process that is not being recorded.
bool core_overview_is_possible(const char *word);

struct overview_wish {
    bool has_limit;  // of a process no more is copied than `cairn core` copies unasked
    bool may_stop;   // false: it is looked at while it goes on
    bool is_json;
    const struct request *request;  // resident memory alone, as it has it; NULL: the whole answer
};

// False with an error if the process cannot be looked at.
bool core_overview_report(const char *word, const struct overview_wish *wish, struct error *error);

#endif
