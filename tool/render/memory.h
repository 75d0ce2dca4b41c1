// SPDX-License-Identifier: Apache-2.0
// The memory picture: what resident memory consisted of, in parts that add up to it.
//
// And what the program mapped itself (cairn run --mmap): a line of the summary, the view of
// mappings, JSON. In the view the profile is one of mappings (profile_show_mapped).
#ifndef TOOL_RENDER_MEMORY_H
#define TOOL_RENDER_MEMORY_H

#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// Both snapshots, a line for each part. `file` names the recording in what is said where there is
// no picture.
void memory_print(const struct terminal *terminal, const struct profile *profile,
                  const struct view_options *view);

// Lines of the summary: "resident  27.1 MiB = 19.5 MiB live + …". Nothing without a picture.
// Totals of the heap as they were when the tool looked: what the views heap and pages can say of a
// recording, which has neither the blocks nor the pages.
void memory_print_totals(const struct terminal *terminal, const struct profile *profile,
                         const struct view_options *view, bool are_pages);

void memory_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view);

// Members "at_peak", "last" (null without a picture) and "points" of the object "rss".
void memory_json_put(struct json *json, const struct recording *recording);

// One line of the default summary; nothing if it was not recorded.
void mapped_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view);

// In the place of the heap's lines, where the profile is one of mappings.
void mapped_print_facts(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view);

// The view. False without memory.
bool mapped_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error);

// "live_bytes" and so on of all and of each kind, without closing the object.
void mapped_json_put(struct json *json, const struct profile *profile);
// Of one stack.
void mapped_json_put_stack(struct json *json, const struct stack *stack);

#endif
