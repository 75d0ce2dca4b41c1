// SPDX-License-Identifier: Apache-2.0
// Programs and libraries that a process runs though their files have been removed or replaced, as
// upgrades do: they are opened through the process, as long as its memory is asked about, so that
// names and types are those of the files that run.
#ifndef TOOL_QUERY_REMOVED_FILES_H
#define TOOL_QUERY_REMOVED_FILES_H

#include <sys/types.h>

#include "tool/heap/image.h"
#include "tool/model/modules.h"

enum { REMOVED_FILES_MAX = 16 };

struct removed_files {
    struct held_file list[REMOVED_FILES_MAX];
    size_t count;
};

// Holds those that the copy of the process lists, for all who look for names. One that may not be
// opened is left. The list must stay where it is.
void removed_files_hold(struct removed_files *files, pid_t pid, const struct core_image *core);
void removed_files_close(struct removed_files *files);

#endif
