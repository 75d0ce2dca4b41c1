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

// Rows, as `request` has them.
bool core_types_rows(struct core_subject *subject, const struct request *request,
                     struct error *error);
bool core_containers_rows(struct core_subject *subject, const struct request *request,
                          struct error *error);

// Blocks of one type.
struct core_type_sum {
    const char *name;  // safe to print, as long as the subject is open; NULL: not known
    uint64_t count, bytes;
};
// Finds the types with the most bytes: `*count` at most, and then as many as there are. `all` is
// the sum of all types.
bool core_types_largest(struct core_subject *subject, struct core_type_sum *rows, size_t *count,
                        struct core_type_sum *all, struct error *error);

bool core_containers_report(const char *word, const struct request *request, bool has_limit,
                            struct error *error);

#endif
