// SPDX-License-Identifier: Apache-2.0
// The stacks of the JSON report: "stacks" and, where it was recorded who freed, "freeing_stacks".
#ifndef TOOL_RENDER_STACKS_JSON_H
#define TOOL_RENDER_STACKS_JSON_H

#include "tool/base/json.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// False without memory; what was begun is closed.
bool stacks_json_put(struct json *json, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view);
// The program's own mappings, with their stacks in the form of those of the heap.
bool stacks_json_put_mapped(struct json *json, const struct profile *profile,
                            const struct frame_names *names, const struct view_options *view);

#endif
