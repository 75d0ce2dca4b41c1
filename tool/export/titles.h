// SPDX-License-Identifier: Apache-2.0
// The titles of all frames of a table as parts of a line "outer;inner": safe text without ';'.
#ifndef TOOL_EXPORT_TITLES_H
#define TOOL_EXPORT_TITLES_H

#include "tool/export/frame_table.h"

struct titles {
    char **list;  // by number of the frame
    size_t count;
};

// False without memory.
bool titles_build(struct titles *titles, const struct frame_table *frames, struct error *error);
void titles_free(struct titles *titles);

#endif
