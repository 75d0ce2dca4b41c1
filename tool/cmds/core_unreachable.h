// SPDX-License-Identifier: Apache-2.0
// `cairn leaks --unreachable SUBJECT`: the blocks of a process or of a core dump that nothing leads
// to.
#ifndef TOOL_CMDS_CORE_UNREACHABLE_H
#define TOOL_CMDS_CORE_UNREACHABLE_H

#include "tool/query/views.h"

// As the views of what is in blocks (core_owners.h). `lost`: how many blocks no root leads to.
bool core_unreachable_report(const char *word, const struct request *request, bool has_limit,
                             uint64_t *lost, struct error *error);

// What no root leads to, and lines of text about the directly lost blocks that most is of, for
// free().
struct core_lost {
    uint64_t bytes, blocks;
    char *offenders;
};
bool core_unreachable_measure(const char *word, bool has_limit, struct core_lost *lost,
                              struct error *error);

#endif
