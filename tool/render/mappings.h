// SPDX-License-Identifier: Apache-2.0
// What the program mapped itself (cairn run --mmap): a line of the summary, the view of mappings,
// JSON. In the view the profile is one of mappings (profile_show_mapped).
#ifndef TOOL_RENDER_MAPPINGS_H
#define TOOL_RENDER_MAPPINGS_H

#include "tool/answer/answer.h"
#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// One line of the default summary; nothing if it was not recorded.
void mapped_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view);

// In the place of the heap's lines, where the profile is one of mappings.
void mapped_print_facts(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view);

// Adds to the view's stacks what a screen has beside them: kinds of mappings above, and what is
// reserved below. False without memory.
bool mapped_add_tables(struct answer *answer, const struct frame_names *names);

// "live_bytes" and so on of all and of each kind, without closing the object.
void mapped_json_put(struct json *json, const struct profile *profile);
// Puts the same of one stack.
void mapped_json_put_stack(struct json *json, const struct stack *stack);

#endif
