// SPDX-License-Identifier: Apache-2.0
// The snapshots that a recording kept: when, why, and how large the heap was.
#ifndef TOOL_RENDER_SNAPSHOTS_SCREEN_H
#define TOOL_RENDER_SNAPSHOTS_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/base/json.h"

// A row for each. False with an error: of a sum of processes, or without memory.
bool snapshots_answer(struct answer *answer, const struct profile *profile,
                      const struct view_options *view, struct error *error);

// Member "snapshots", a list. False without memory.
bool snapshots_json_put(struct json *json, const struct profile *profile);

#endif
