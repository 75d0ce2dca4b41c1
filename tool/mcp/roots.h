// SPDX-License-Identifier: Apache-2.0
// The directories that an agent may read in, and paths that it names. That nothing leads out is
// judged when files are opened (tool/base/confine.h); here a path is judged before a command
// begins, so that an answer does not even tell what exists elsewhere.
#ifndef TOOL_MCP_ROOTS_H
#define TOOL_MCP_ROOTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "tool/base/error.h"

enum { ROOTS_MAX = 16 };

struct roots {
    char *paths[ROOTS_MAX];  // absolute, without symbolic links
    size_t count;
};

bool roots_add(struct roots *roots, const char *directory, struct error *error);
void roots_free(struct roots *roots);

// The file or directory that a client names: absolute, or relative to the first root that has it.
bool roots_find(const struct roots *roots, const char *name, char path[PATH_MAX],
                struct error *error);

// The path as a client would name it: relative to the root that holds it, if that is the first one.
const char *roots_name(const struct roots *roots, const char *path);

#endif
