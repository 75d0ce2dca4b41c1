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

#endif
