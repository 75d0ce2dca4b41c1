// SPDX-License-Identifier: Apache-2.0
// The moments that a recording kept: when, why, and how large the heap was.
#ifndef TOOL_RENDER_MOMENTS_SCREEN_H
#define TOOL_RENDER_MOMENTS_SCREEN_H

#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/options.h"
#include "tool/render/terminal.h"

// A line for each. False without memory.
bool moments_print(const struct terminal *terminal, const struct profile *profile,
                   const struct view_options *view, struct error *error);

// Member "moments", a list. False without memory.
bool moments_json_put(struct json *json, const struct profile *profile);

#endif
