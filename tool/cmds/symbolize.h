// SPDX-License-Identifier: Apache-2.0
// Names written into a recording, so that it can be read where the program's files are not.
#ifndef TOOL_CMDS_SYMBOLIZE_H
#define TOOL_CMDS_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/cmds/commands.h"
#include "tool/query/merged.h"

struct symbolized {
    size_t recordings;
    size_t frames, unresolved;
    size_t bytes;  // of names
    size_t late;   // modules whose names are left for the first report
};

// cairn run and attach: what --symbols says; false with an error.
enum symbolize_which { SYMBOLIZE_NONE, SYMBOLIZE_OWN, SYMBOLIZE_ALL };
bool symbolize_read_option(const struct command_args *args, enum symbolize_which *which,
                           struct error *error);

// Keeps the names of a recording that has just been opened in it, with an effort that nobody has to
// wait for, and gives them to `opened` too.
bool symbolize_opened(const char *path, enum symbolize_which which, struct opened *opened,
                      struct symbolized *done, struct error *error);

// The two halves of that: the names of a recording that may not be in a file yet, with the same
// effort, and what is done with them; `found->bytes` for free() after either, whatever comes of it.
bool symbolize_collect(enum symbolize_which which, struct opened *opened,
                       struct names_collected *found, struct error *error);
bool symbolize_keep(const char *path, struct names_collected *found, struct opened *opened,
                    struct symbolized *done, struct error *error);

// The same for each recording of a run, those with the highest peaks first.
bool symbolize_run(const char *path, enum symbolize_which which, struct symbolized *done,
                   struct error *error);

#endif
