// SPDX-License-Identifier: Apache-2.0
// The allocators that a program can be started with.
#ifndef TOOL_REPLAY_ALLOCATORS_H
#define TOOL_REPLAY_ALLOCATORS_H

#include <limits.h>
#include <stdbool.h>

#include "tool/base/error.h"

// Their names, glibc first, NULL at last.
extern const char *const allocator_names[];

// The library of an allocator by its name, or a path; "" for glibc, which needs none.
bool allocator_find(const char *name, char path[PATH_MAX], struct error *error);

#endif
