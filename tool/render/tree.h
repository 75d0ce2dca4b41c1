// SPDX-License-Identifier: Apache-2.0
// All stacks as one tree of functions: from the program's start inwards, or inverted from the
// allocating functions outwards. Branches below one percent are added up in a line.
#ifndef TOOL_RENDER_TREE_H
#define TOOL_RENDER_TREE_H

#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// For programs that read it: a line a call without limits of width,
// "->N calls, NB: function (file:line)", plain numbers, two blanks a level. N counts blocks for
// measures of blocks, B is what was allocated for measures that are no bytes.
bool tree_print_lines(FILE *out, const struct profile *profile, const struct frame_names *names,
                      const struct view_options *view, struct error *error);

// False without memory.
bool tree_print(const struct terminal *terminal, const struct profile *profile,
                const struct frame_names *names, const struct view_options *view,
                struct error *error);

#endif
