// SPDX-License-Identifier: Apache-2.0
// The views heap and pages: of a process, which is stopped for a moment, or of a core dump.
#ifndef TOOL_QUERY_HEAP_REPORT_H
#define TOOL_QUERY_HEAP_REPORT_H

#include <stdbool.h>

#include "tool/base/error.h"

struct request;

struct heap_look;
struct opened;
// Writes the rows of the view of a look, whose recording is open, as `request` has it.
bool heap_views_rows(const struct heap_look *look, struct opened *opened,
                     const struct request *request, struct error *error);

bool heap_views_report(const char *word, const struct request *request, struct error *error);

#endif
