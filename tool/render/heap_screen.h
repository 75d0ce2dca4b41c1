// SPDX-License-Identifier: Apache-2.0
// The views heap and pages: what a heap is like, and who keeps its pages resident.
#ifndef TOOL_RENDER_HEAP_SCREEN_H
#define TOOL_RENDER_HEAP_SCREEN_H

#include "tool/base/units.h"
#include "tool/model/heap_state.h"
#include "tool/render/frames.h"
#include "tool/render/options.h"
#include "tool/render/terminal.h"

// What is told about. `profile` and `names`: of its recording; NULL: it has none.
struct heap_about {
    const char *name;  // a pid or a core, safe text
    const struct heap_state *state;
    const struct profile *profile;
    const struct frame_names *names;
};

// False without memory.
bool heap_screen_print(const struct terminal *terminal, const struct heap_about *about,
                       const struct view_options *view, struct error *error);
bool pages_screen_print(const struct terminal *terminal, const struct heap_about *about,
                        const struct view_options *view, struct error *error);

// Schema cairn.heap/1, with "pages" if `has_pages` (docs/json.md). False without memory.
bool heap_json_print(FILE *out, const struct heap_about *about, const struct view_options *view,
                     bool has_pages, struct error *error);

// What of the heap could not be read, in lines; nothing if there is no such thing.
void heap_print_doubts(const struct terminal *terminal, const struct heap_state *state);

// "blocks of 64 B to 127 B".
struct unit_text heap_class_name(unsigned class, bool is_plain_number);

#endif
