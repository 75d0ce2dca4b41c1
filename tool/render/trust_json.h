// SPDX-License-Identifier: Apache-2.0
// Processes that a recording does not have, and looks at the one that it has, as JSON
// (docs/reference/json.md).
#ifndef TOOL_RENDER_TRUST_JSON_H
#define TOOL_RENDER_TRUST_JSON_H

#include "tool/base/json.h"
#include "tool/model/reader.h"

// Puts `not_recorded`: programs that were started and not recorded. Nothing if there are none.
void trust_json_put_left_out(struct json *json, const struct recording *recording);

// Puts `not_kept`: processes of few calls. Nothing if there are none.
void trust_json_put_unkept(struct json *json, const struct cairn_unkept *unkept);

// Puts `looks`: those at the heap while it was recorded. Nothing if there are none.
void trust_json_put_looks(struct json *json, const struct recording *recording);

#endif
