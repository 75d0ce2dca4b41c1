// SPDX-License-Identifier: Apache-2.0
// The snapshots that a recording kept: when, why, and how large the heap was.
#ifndef TOOL_RENDER_SNAPSHOTS_SCREEN_H
#define TOOL_RENDER_SNAPSHOTS_SCREEN_H

#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/terminal.h"

// A line for each. False without memory.
bool snapshots_print(const struct terminal *terminal, const struct profile *profile,
                     const struct view_options *view, struct error *error);

// Member "snapshots", a list. False without memory.
bool snapshots_json_put(struct json *json, const struct profile *profile);

#endif
