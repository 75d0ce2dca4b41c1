// SPDX-License-Identifier: Apache-2.0
// How much of the files that a process has open lies in the page cache, by cachestat(2), which
// Linux has since 6.5. A descriptor is duplicated for a moment (pidfd_getfd): nothing is opened, so
// that no lease is broken and no file system asked, and the process notices nothing.
#ifndef TOOL_PROC_CACHED_FILES_H
#define TOOL_PROC_CACHED_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cached_file {
    const char *name;  // its path as the process' link has it; valid during the call
    uint64_t bytes;    // in the page cache, whoever read it
    bool is_shared;    // of a tmpfs: it is memory itself
};

// Tells `each` of each regular file that has at least `least_bytes` and some of it cached; a file
// may come several times. False: this kernel cannot say so, or the process may not be looked at.
bool cached_files_of(pid_t pid, uint64_t least_bytes,
                     void (*each)(void *context, const struct cached_file *file), void *context);

#endif
