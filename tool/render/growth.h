// SPDX-License-Identifier: Apache-2.0
// Stacks whose live bytes rise from snapshot to snapshot: how fast, how steadily, how they went,
// and from which generation the blocks are that still live.
#ifndef TOOL_RENDER_GROWTH_H
#define TOOL_RENDER_GROWTH_H

#include "tool/model/growth.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// With too few snapshots it says how to get more. False without memory.
bool growth_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error);

#endif
