// SPDX-License-Identifier: Apache-2.0
// The file that a process has mapped, also when its name was removed or belongs to another file by
// now: an upgrade replaces the executables and libraries of servers that run on.
#ifndef TOOL_PROC_MAPPED_FILE_H
#define TOOL_PROC_MAPPED_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "tool/proc/maps.h"

// Opens the very file that is mapped at the address, for reading; -1: there is none, or nothing
// leads to it. The kernel shows removed libraries to privileged users alone, and the executable to
// whoever may look at the process.
int mapped_file_open(pid_t pid, uint64_t address);
// The same of a mapping that is known.
int mapped_file_open_known(pid_t pid, const struct mapping *mapping);

#endif
