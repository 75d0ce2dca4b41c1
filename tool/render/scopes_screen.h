// SPDX-License-Identifier: Apache-2.0
// Regions and pools that the program named, as answers.
#ifndef TOOL_RENDER_SCOPES_SCREEN_H
#define TOOL_RENDER_SCOPES_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/terminal.h"

// Ranked by the measure, most first; values are those with inner regions. False without memory.
bool regions_answer(struct answer *answer, const struct profile *profile,
                    const struct view_options *view, struct error *error);

// Ranked by peak, or the measure. False without memory.
bool pools_answer(struct answer *answer, const struct profile *profile,
                  const struct view_options *view, struct error *error);

// Lines of the summary: the pools that had the highest peaks of their own; nothing where there are
// none. False without memory.
bool pools_print_lines(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view, struct error *error);

// "regions" and "pools" of the JSON report (docs/reference/json.md); nothing where there are none.
// False without memory.
bool scopes_put_json(struct json *json, const struct profile *profile);

#endif
