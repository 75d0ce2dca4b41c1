// SPDX-License-Identifier: Apache-2.0
// `cairn report SUBJECT --view waste`: what of the blocks of a process or of a core dump is of no
// use.
#ifndef TOOL_CMDS_CORE_WASTE_H
#define TOOL_CMDS_CORE_WASTE_H

#include "tool/query/views.h"

// `word`: the core dump or process. `has_limit`: of a process no more is copied than `cairn core`
// copies unasked.
bool core_waste_report(const char *word, const struct request *request, bool has_limit,
                       struct error *error);

// What of it is of no use, of how many bytes, and lines of text about the blocks that most is of,
// for free().
struct core_waste {
    uint64_t wasted, bytes;
    char *offenders;
};
bool core_waste_measure(const char *word, bool has_limit, struct core_waste *waste,
                        struct error *error);

#endif
