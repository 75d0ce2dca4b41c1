// SPDX-License-Identifier: Apache-2.0
// The small files of /proc/PID.
#ifndef TOOL_WATCH_PROC_H
#define TOOL_WATCH_PROC_H

#include <stddef.h>
#include <sys/types.h>

// Text of a file below /proc/PID, terminated; its length, 0 if there is none.
size_t proc_read(pid_t pid, const char *name, char *text, size_t size);

#endif
