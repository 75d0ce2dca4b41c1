// SPDX-License-Identifier: Apache-2.0
// What a user chose for a view.
#ifndef TOOL_RENDER_OPTIONS_H
#define TOOL_RENDER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/model/measure.h"

struct frame;

struct view_options {
    enum measure by;
    size_t top;                 // entries of a list, children of a tree's node; 0: all
    size_t depth;               // frames of a stack, levels of a tree; 0: all
    double threshold;           // least share of the whole that is worth a line, 0 to 1
    int64_t min_bytes;          // least value of a line; 0: any
    const struct frame *pivot;  // tree: starts at this function; NULL: whole stacks
    bool is_inverted;           // tree: from the allocating functions to their callers
    bool has_all_frames;        // plumbing is shown as well
    bool is_plain_number;       // sizes in bytes
};

// The least value that is worth a line, at least 1.
int64_t view_threshold(const struct view_options *view, int64_t whole);

#endif
