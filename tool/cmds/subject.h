// SPDX-License-Identifier: Apache-2.0
// Which recording a command is about: the file named, the one in a named directory that had the
// highest peak, or, with nothing named, the newest *.cairn of the current directory.
#ifndef TOOL_CMDS_SUBJECT_H
#define TOOL_CMDS_SUBJECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "tool/base/error.h"

struct subject {
    char path[PATH_MAX];
    size_t others_count;  // further recordings of a named directory
};

// `word` may be NULL.
bool subject_find(const char *word, struct subject *subject, struct error *error);

#endif
