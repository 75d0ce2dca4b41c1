// SPDX-License-Identifier: Apache-2.0
// The one name that a process has on every screen and in every file name: that of the command that
// was executed.
#ifndef TOOL_BASE_PROCESS_NAME_H
#define TOOL_BASE_PROCESS_NAME_H

#include <limits.h>

enum { PROCESS_COMM_BYTES = 16 };  // TASK_COMM_LEN of the kernel

// Chooses the name. The kernel keeps it, cut to 15 bytes, as `comm`; the full name is in the first
// argument, in the executable's path, or, for a script, in the second argument. A program may
// overwrite its arguments (nginx, redis, postgres) or its comm (node, firefox): if no text agrees
// with the comm, the name is the executable's, in the form in which it was called.
// Each may be "": not known. `executable`: its path. `called`, `second`: the first two arguments.
void process_name_choose(const char *comm, const char *executable, const char *called,
                         const char *second, char name[NAME_MAX]);

// Base name of an executable's path, without the kernel's suffix for a deleted file.
void process_name_of_image(const char *path, char name[NAME_MAX]);

#endif
