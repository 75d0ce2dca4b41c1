// SPDX-License-Identifier: Apache-2.0
// `cairn report SUBJECT --view types` and `--view containers`: the blocks of a process or of a core
// dump by their types, and how full its containers are.
#ifndef TOOL_CMDS_CORE_TYPES_H
#define TOOL_CMDS_CORE_TYPES_H

#include "tool/cmds/core_sets.h"
#include "tool/query/views.h"

// `word`: the core dump or process. `has_limit`: of a process no more is copied than `cairn core`
// copies unasked.
bool core_types_report(const char *word, const struct request *request, bool has_limit,
                       struct error *error);
// The screen alone, of what is open: with references (HEAP_REFERENCES).
bool core_types_print(struct core_subject *subject, const struct view_options *options,
                      struct error *error);
bool core_containers_report(const char *word, const struct request *request, bool has_limit,
                            struct error *error);

#endif
