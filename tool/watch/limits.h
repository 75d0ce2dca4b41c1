// SPDX-License-Identifier: Apache-2.0
// The tool's own limits: each recorded process costs it a descriptor, and the memory of a recording
// counts as a file that is as large as all that could be recorded.
#ifndef TOOL_WATCH_LIMITS_H
#define TOOL_WATCH_LIMITS_H

#include <stdbool.h>
#include <sys/resource.h>

#include "tool/base/error.h"

struct limits {
    struct rlimit files, file_bytes;
};

// Raises both as far as they go. `old` is what a program gets that the tool starts.
void limits_raise(struct limits *old);
void limits_restore(const struct limits *old);

// Whether files may be as large as the memory of the smallest recording. False with a clause.
bool limits_leave_room(struct error *error);

#endif
