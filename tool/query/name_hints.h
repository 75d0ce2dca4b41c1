// SPDX-License-Identifier: Apache-2.0
// What to do about frames without a name.
#ifndef TOOL_QUERY_NAME_HINTS_H
#define TOOL_QUERY_NAME_HINTS_H

#include <stdio.h>

#include "tool/query/merged.h"

// A line for each of the modules with the most frames without a name: what they are, why, and which
// package or option would name them. Also why names of other modules are doubtful. `is_summed_up`:
// a summary stands above, which has said what of languages is missing.
void name_hints_print(FILE *out, const struct opened *opened, bool is_summed_up);

// Why frames of the program's own modules have no names, and what would name them, in one line of
// safe text; of the module with most of them. False if all have one.
bool name_hints_lost(const struct opened *opened, char *out, size_t size);

#endif
