// SPDX-License-Identifier: Apache-2.0
// What the largest stacks held over time, as a stacked area of letters: from the snapshots that the
// recording kept.
#ifndef TOOL_RENDER_AREA_H
#define TOOL_RENDER_AREA_H

#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct area_frame {
    size_t columns;  // of the area
    int axis_columns;
    uint64_t end_ns;
};

// Nothing without at least two snapshots. False without memory.
bool area_print(const struct terminal *terminal, const struct profile *profile,
                const struct frame_names *names, const struct view_options *view,
                const struct area_frame *frame, struct error *error);

#endif
