// SPDX-License-Identifier: Apache-2.0
// Values that stand in JSON wherever there are stacks: reports, exports, comparisons, cairn top.
#ifndef TOOL_RENDER_JSON_VALUES_H
#define TOOL_RENDER_JSON_VALUES_H

#include "tool/base/json.h"
#include "tool/render/frames.h"

// Members that are the same wherever they stand: of a frame's code, of a stack's values, and how
// sure those are if they were estimated.
void json_values_put_code(struct json *json, const struct frame *frame);
void json_values_put_frame(struct json *json, const struct frame *frame);
// `has_frees` false: what needs them is null.
void json_values_put_values(struct json *json, const struct stack *stack,
                            const struct profile *profile);
// Of a region, a pool or a set of labels.
void json_values_put_part(struct json *json, const struct stack *values);
void json_values_put_estimate(struct json *json, const char *key, const struct estimate *estimate);
void json_values_put_estimates(struct json *json, const struct estimate *estimates, bool has_at);

// The frames of a node, innermost first.
bool json_values_put_frames(struct json *json, const char *key, const struct profile *profile,
                            const struct frame_names *names, uint32_t node);
void json_values_put_inherited(struct json *json, const struct inherited *inherited);

#endif
