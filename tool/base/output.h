// SPDX-License-Identifier: Apache-2.0
// A file that a command writes: it appears under its name when it is complete, and never takes the
// place of another one unless that is wanted.
//
// Until then it is `PATH.part-PID` beside it. What is no file and no directory (a device, a pipe)
// is written as it is.
#ifndef TOOL_BASE_OUTPUT_H
#define TOOL_BASE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "tool/base/error.h"

struct output {
    FILE *file;                // NULL: closed
    char path[PATH_MAX];       // "-": standard output
    char temporary[PATH_MAX];  // "": the path itself is written
    bool can_replace;
};

// `path` NULL or "-" is standard output. Refuses a path that exists, unless `can_replace`.
bool output_open(const char *path, bool can_replace, struct output *output, struct error *error);

// The same without a stream, for writers that open `temporary` by name.
bool output_prepare(const char *path, bool can_replace, struct output *output, struct error *error);

// Closes the file and gives it its name. False if something could not be written; a reader of
// standard output that went away is no failure.
bool output_commit(struct output *output, struct error *error);

// Closes and removes what was written. Does nothing after a commit.
void output_cancel(struct output *output);

#endif
