// SPDX-License-Identifier: Apache-2.0
// What was allocated under each label of the program's own, or each set of them.
#ifndef TOOL_RENDER_CONTEXTS_SCREEN_H
#define TOOL_RENDER_CONTEXTS_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/terminal.h"

// By the values of a key, or by sets of labels (NULL); ranked by the measure. False without memory.
bool contexts_answer(struct answer *answer, const struct profile *profile,
                     const struct view_options *view, const char *key, struct error *error);

// "contexts" of the JSON report; nothing where there are none. False without memory.
bool contexts_put_json(struct json *json, const struct profile *profile);

#endif
