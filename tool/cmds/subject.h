// SPDX-License-Identifier: Apache-2.0
// Which recording a command is about: the file named, the one in a named directory that had the
// highest peak, or, with nothing named, the newest *.cairn of the current directory.
#ifndef TOOL_CMDS_SUBJECT_H
#define TOOL_CMDS_SUBJECT_H

#include <limits.h>
#include <stdbool.h>

#include "tool/base/error.h"

struct subject {
    char path[PATH_MAX];       // of the recording
    char directory[PATH_MAX];  // in which it was chosen among the processes of a run; "": none
};

// `word` may be NULL.
bool subject_find(const char *word, struct subject *subject, struct error *error);

// "x.cairn" and the like.
bool subject_is_recording_name(const char *name);

#endif
