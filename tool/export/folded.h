// SPDX-License-Identifier: Apache-2.0
// Stacks as one text each, "outer;inner": what collapsed stacks, CSV and mptrace have in common.
// Names are escaped once a frame; what would separate frames in a name is replaced.
#ifndef TOOL_EXPORT_FOLDED_H
#define TOOL_EXPORT_FOLDED_H

#include "tool/export/frame_table.h"

struct folded_title {
    char *text;
    size_t length;
};

struct folded {
    struct frame_table frames;
    struct folded_title *titles;  // by number of the frame
    size_t title_count;
};

// `has_quotes`: quotes in names are doubled, as CSV has them. False without memory.
bool folded_open(struct folded *folded, const struct export *export, bool has_quotes,
                 struct error *error);
void folded_close(struct folded *folded);

// Writes the stack of a node, at least one frame. False without memory.
bool folded_put(FILE *out, struct folded *folded, uint32_t node, struct error *error);

#endif
