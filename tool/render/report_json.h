// SPDX-License-Identifier: Apache-2.0
// A whole profile as one JSON object, schema "cairn.report/1"; docs/json.md explains it.
#ifndef TOOL_RENDER_REPORT_JSON_H
#define TOOL_RENDER_REPORT_JSON_H

#include <stdio.h>

#include "tool/render/frames.h"
#include "tool/render/options.h"

#define REPORT_SCHEMA "cairn.report/1"

// `view` gives the order of the stacks (by), how many (top) and how many frames of each (depth).
// False without memory.
bool report_json_print(FILE *out, const struct profile *profile, const struct frame_names *names,
                       const struct view_options *view, struct error *error);

#endif
