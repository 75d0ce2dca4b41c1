// SPDX-License-Identifier: Apache-2.0
// Which stacks freed the blocks of which (cairn run --free-stacks): stacks as usual, each with the
// places that freed its blocks.
#ifndef TOOL_RENDER_FREE_STACKS_H
#define TOOL_RENDER_FREE_STACKS_H

#include "tool/model/shape.h"
#include "tool/render/frames.h"
#include "tool/render/options.h"
#include "tool/render/terminal.h"

// Whether it was recorded.
bool free_stacks_has_any(const struct profile *profile);

// A list of one stack spells out the frames of those that freed its blocks. False without memory,
// or if it was not recorded.
bool free_stacks_print(const struct terminal *terminal, const struct profile *profile,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error);

#endif
