// SPDX-License-Identifier: Apache-2.0
// The ten largest stacks over time, on top of each other, below a chart of the heap. A stack is
// drawn as it was at the last snapshot, or at the peak; where the whole heap has fallen since, it
// says that what stacks hold is unknown, and where it has risen, that the rest of it is.
#ifndef TOOL_RENDER_STACK_AREA_H
#define TOOL_RENDER_STACK_AREA_H

#include "tool/model/profile.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

enum { AREA_COLUMNS_MAX = 160 };

// The frame of the area, and what the whole heap held at least and at most in each column; 0:
// unknown.
struct area_frame {
    size_t columns;
    int axis_columns;
    uint64_t end_ns;
    uint64_t low_bytes[AREA_COLUMNS_MAX], high_bytes[AREA_COLUMNS_MAX];
};

// Prints nothing without at least two snapshots. False without memory.
bool stack_area_print(const struct terminal *terminal, const struct profile *profile,
                      const struct frame_names *names, const struct view_options *view,
                      const struct area_frame *frame, struct error *error);

#endif
