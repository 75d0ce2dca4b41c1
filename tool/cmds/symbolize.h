// SPDX-License-Identifier: Apache-2.0
// Names written into a recording, so that it can be read where the program's files are not.
#ifndef TOOL_CMDS_SYMBOLIZE_H
#define TOOL_CMDS_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/cmds/names.h"

struct symbolized {
    size_t recordings;
    size_t frames, unresolved;
    size_t bytes;  // of names
};

// Looks up names of a recording, or of each of a run, and keeps them in it; where there is not one
// name, the recording stays as it is. `done` is added to.
bool symbolize_path(const char *path, enum names_part part, struct symbolized *done,
                    struct error *error);

#endif
