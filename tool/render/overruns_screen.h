// SPDX-License-Identifier: Apache-2.0
// Blocks that were written past (cairn run --guard), on a screen and in JSON.
#ifndef TOOL_RENDER_OVERRUNS_SCREEN_H
#define TOOL_RENDER_OVERRUNS_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/base/error.h"
#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// "damaged  2 blocks were written past" with what there is to say, as a line of the summary;
// nothing if no block had guard bands.
void overruns_print_line(const struct terminal *terminal, const struct profile *profile);

// A row for each kind of damage. False without memory.
bool overruns_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error);

// One line for each of the first `top` kinds, for `cairn check`.
void overruns_print_short(FILE *out, const struct profile *profile, const struct frame_names *names,
                          size_t top);

// "guard", if blocks had bands.
bool overruns_put_json(struct json *json, const struct profile *profile,
                       const struct frame_names *names);

#endif
