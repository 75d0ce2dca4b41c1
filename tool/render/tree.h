// SPDX-License-Identifier: Apache-2.0
// All stacks as one tree of functions: from the program's start inwards, or inverted from the
// allocating functions outwards. Branches below one percent are added up in a line.
#ifndef TOOL_RENDER_TREE_H
#define TOOL_RENDER_TREE_H

#include "tool/answer/answer.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// As rows, each call below its caller (level), those that are not worth one summed up ("[3 more]",
// left_out). Calls are counted whatever the measure is. False without memory.
bool tree_answer(struct answer *answer, const struct profile *profile,
                 const struct frame_names *names, const struct view_options *view,
                 struct error *error);

#endif
