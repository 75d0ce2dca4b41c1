// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/cached_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tool/proc/process.h"

// Descriptors of a process that are looked at: some have hundreds of thousands.
enum { FILES_MOST = 4096 };

// Numbers of all processors since Linux 5.3; headers may be older.
enum { CALL_PIDFD_OPEN = 434, CALL_PIDFD_GETFD = 438, CALL_CACHESTAT = 451 };

// As in <linux/mman.h> since 6.5.
struct cached_range {
    uint64_t offset, length;  // 0: to the end
};
struct cached_pages {
    uint64_t cached, dirty, written, evicted, evicted_lately;
};

// False: this kernel cannot say.
static bool cached_bytes(int file, uint64_t *bytes) {
    struct cached_range all = {0};
    struct cached_pages pages = {0};
    if (syscall(CALL_CACHESTAT, file, &all, &pages, 0)) return errno != ENOSYS && errno != EPERM;
    *bytes = pages.cached * process_page_bytes();
    return true;
}

// Looks at one descriptor. False: this kernel cannot say, or the process may not be looked at.
static bool look(int process, pid_t pid, const char *number, uint64_t least_bytes,
                 struct cached_file *found, char name[PATH_MAX]) {
    char place[PROCESS_PATH_BYTES];
    struct stat status, same;
    struct statfs system;
    found->bytes = 0;
    snprintf(place, sizeof place, "fd/%s", number);
    char path[PROCESS_PATH_BYTES];
    process_path(path, pid, place);
    if (stat(path, &status) || !S_ISREG(status.st_mode) || (uint64_t)status.st_size < least_bytes)
        return true;
    if (!process_link(pid, place, name, PATH_MAX)) return true;
    int file = (int)syscall(CALL_PIDFD_GETFD, process, atoi(number), 0);
    if (file < 0) return errno == EBADF || errno == ESRCH;
    bool is_same = !fstat(file, &same) && same.st_ino == status.st_ino &&
                   same.st_dev == status.st_dev && !fstatfs(file, &system);
    bool is_known = !is_same || cached_bytes(file, &found->bytes);
    if (is_same) found->is_shared = system.f_type == TMPFS_MAGIC;
    close(file);
    return is_known;
}

bool cached_files_of(pid_t pid, uint64_t least_bytes,
                     void (*each)(void *context, const struct cached_file *file), void *context) {
    char path[PROCESS_PATH_BYTES], name[PATH_MAX];
    struct cached_file found = {.name = name};
    int process = (int)syscall(CALL_PIDFD_OPEN, pid, 0), left = FILES_MOST;
    DIR *list = process < 0 ? NULL : opendir(process_path(path, pid, "fd"));
    bool is_known = list != NULL;
    for (struct dirent *entry; is_known && left && (entry = readdir(list));) {
        if (!isdigit((unsigned char)*entry->d_name)) continue;
        left--;
        is_known = look(process, pid, entry->d_name, least_bytes, &found, name);
        if (is_known && found.bytes) each(context, &found);
    }
    if (list) closedir(list);
    if (process >= 0) close(process);
    return is_known;
}
