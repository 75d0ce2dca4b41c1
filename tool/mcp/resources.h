// SPDX-License-Identifier: Apache-2.0
// Recordings below the roots, as resources: cairn:///PATH/NAME.cairn, whose content is the summary.
#ifndef TOOL_MCP_RESOURCES_H
#define TOOL_MCP_RESOURCES_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "tool/mcp/roots.h"

// The result of resources/list from `cursor` on (NULL: from the start); NULL without memory, or
// with
// `*is_cursor_bad` set.
json_t *resources_json(const struct roots *roots, const char *cursor, bool *is_cursor_bad);
json_t *resource_templates_json(void);

// The list as text, a recording a line, the newest first; false without memory.
bool resources_print(FILE *out, const struct roots *roots);

// The path that a URI names, "%41" and the like decoded; whether it exists is another matter.
bool resource_path(const char *uri, char path[PATH_MAX], struct error *error);

#endif
