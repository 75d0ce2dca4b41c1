// SPDX-License-Identifier: Apache-2.0
// What the blocks of a stack were like, as JSON (docs/json.md).
#ifndef TOOL_RENDER_SHAPE_JSON_H
#define TOOL_RENDER_SHAPE_JSON_H

#include "tool/base/json.h"
#include "tool/model/shape.h"

// "sizes", "reallocs" and "ages" of one stack; those that were not recorded are left out.
void shape_json_put(struct json *json, const struct shape *shape, uint32_t stack_number);

// "freed_by": pairs of slots of threads. False without memory.
bool shape_json_put_freed_by(struct json *json, const struct profile *profile);

#endif
