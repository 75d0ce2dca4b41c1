// SPDX-License-Identifier: Apache-2.0
// Measures how much of the files that a process has open lies in the page cache, by cachestat(2),
// which Linux has since 6.5.
//
// Each file is opened once more for an instant, for reading: a descriptor duplicated from the
// process would keep its lock of flock, or a file that it just wrote from being executed. A file
// under a lease is left alone, since opening it would break that, and so are file systems that ask
// another machine or program.
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

// Returns true if a text of /proc/PID/fdinfo/N says that there is a lease on the file.
bool cached_files_has_lease(const char *fdinfo);

// Returns true if the mount with this number, in a text of /proc/PID/mountinfo, asks another
// machine or program; also if there is no such mount.
bool cached_files_is_remote(const char *mountinfo, int mount);

#endif
