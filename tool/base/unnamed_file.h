// SPDX-License-Identifier: Apache-2.0
// A file in memory without a name, as memfd_create makes it. Kernels before Linux 3.17 have no such
// call: there it is a file of shared memory, or of a directory for temporary files, whose name is
// removed at once. Its mappings are called "/memfd:NAME (deleted)" in the one case and
// "PLACE/memfd:NAME-PID (deleted)" in the other (unnamed_file_is_called).
#ifndef TOOL_BASE_UNNAMED_FILE_H
#define TOOL_BASE_UNNAMED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

// Makes one that can be sealed where the kernel can do that; -1 and errno on failure.
int unnamed_file_make(const char *name);

// Directories for the second form, best first.
enum { UNNAMED_FILE_PLACES = 3 };
extern const char *const unnamed_file_places[UNNAMED_FILE_PLACES];

// The path that the second form has until it is removed; `place` is one of those above.
void unnamed_file_path(char path[NAME_MAX], const char *place, const char *name);

// Whether a mapping with this name is of such a file, and its NAME begins with `name`.
bool unnamed_file_is_called(const char *mapping, const char *name);

#endif
