// SPDX-License-Identifier: Apache-2.0
// `cairn report SUBJECT --view owners`: who keeps the blocks of a process or of a core dump.
#ifndef TOOL_CMDS_CORE_OWNERS_H
#define TOOL_CMDS_CORE_OWNERS_H

#include "tool/cmds/core_sets.h"
#include "tool/query/views.h"

// `word`: the core dump or process. `has_limit`: of a process no more is copied than `cairn core`
// copies unasked.
bool core_owners_report(const char *word, const struct request *request, bool has_limit,
                        struct error *error);

// Rows, as `request` has them.
bool core_owners_rows(struct core_subject *subject, const struct request *request,
                      struct error *error);

// The screen alone, of what is open: with references (HEAP_REFERENCES).
bool core_owners_print(struct core_subject *subject, const struct view_options *options,
                       struct error *error);

#endif
