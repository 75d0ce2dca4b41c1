// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/cached_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tool/proc/process.h"

// Descriptors of a process that are looked at, since some have hundreds of thousands, and bytes of
// what /proc says of mounts and of a descriptor.
enum { FILES_MOST = 4096, MOUNTS_BYTES = 1 << 20, ABOUT_BYTES = 4096 };

// The number of all processors; headers may be older than Linux 6.5.
enum { CALL_CACHESTAT = 451 };

// As in <linux/mman.h> since 6.5.
struct cached_range {
    uint64_t offset, length;  // 0: to the end
};
struct cached_pages {
    uint64_t cached, dirty, written, evicted, evicted_lately;
};

struct looking {
    pid_t pid;
    uint64_t least_bytes;
    char *mounts;
    struct cached_file found;
    char name[PATH_MAX];
};

// --- what is left alone

bool cached_files_has_lease(const char *fdinfo) {
    for (const char *line = fdinfo; (line = strstr(line, "lock:")); line++)
        if (memmem(line, strcspn(line, "\n"), "LEASE", strlen("LEASE"))) return true;
    return false;
}

static bool is_remote_type(const char *type, size_t length) {
    static const char *const starts[] = {"nfs",   "cifs", "smb",      "fuse",    "9p",
                                         "ceph",  "afs",  "virtiofs", "gluster", "lustre",
                                         "ocfs2", "gfs2", "autofs",   "coda"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (length >= strlen(starts[i]) && !strncmp(type, starts[i], strlen(starts[i])))
            return true;
    return false;
}

bool cached_files_is_remote(const char *mountinfo, int mount) {
    for (const char *line = mountinfo; *line;) {
        size_t length = strcspn(line, "\n");
        if (atoi(line) == mount) {
            const char *type = memmem(line, length, " - ", strlen(" - "));
            return !type ||
                   is_remote_type(type + strlen(" - "), strcspn(type + strlen(" - "), " \n"));
        }
        line += length + (line[length] == '\n');
    }
    return true;
}

// Returns true if the descriptor may be looked at, by what /proc knows without a word to the file
// system. Memory without a path (memfd) lies on a mount that nobody sees.
static bool is_plain(const struct looking *looking, const char *number) {
    char place[PROCESS_PATH_BYTES], about[ABOUT_BYTES];
    if (*looking->name != '/') return false;
    snprintf(place, sizeof place, "fdinfo/%s", number);
    if (!process_read(looking->pid, place, about, sizeof about)) return false;
    const char *mount = process_field(about, "mnt_id");
    if (cached_files_has_lease(about)) return false;
    return !strncmp(looking->name, "/memfd:", strlen("/memfd:")) ||
           (isdigit((unsigned char)*mount) &&
            !cached_files_is_remote(looking->mounts, atoi(mount)));
}

// --- a file

// False: this kernel cannot say.
static bool cached_bytes(int file, uint64_t *bytes) {
    struct cached_range all = {0};
    struct cached_pages pages = {0};
    if (syscall(CALL_CACHESTAT, file, &all, &pages, 0)) return errno != ENOSYS && errno != EPERM;
    *bytes = pages.cached * process_page_bytes();
    return true;
}

// Looks at one descriptor. False: this kernel cannot say.
static bool look(struct looking *looking, const char *number) {
    char place[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES];
    struct stat status;
    struct statfs system;
    looking->found.bytes = 0;
    snprintf(place, sizeof place, "fd/%s", number);
    process_path(path, looking->pid, place);
    process_link(looking->pid, place, looking->name, sizeof looking->name);
    if (!is_plain(looking, number) || stat(path, &status) || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size < looking->least_bytes)
        return true;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return true;
    bool is_known = cached_bytes(file, &looking->found.bytes);
    looking->found.is_shared = !fstatfs(file, &system) && system.f_type == TMPFS_MAGIC;
    close(file);
    return is_known;
}

bool cached_files_of(pid_t pid, uint64_t least_bytes,
                     void (*each)(void *context, const struct cached_file *file), void *context) {
    char path[PROCESS_PATH_BYTES];
    struct looking looking = {.pid = pid, .least_bytes = least_bytes};
    int left = FILES_MOST;
    DIR *list = opendir(process_path(path, pid, "fd"));
    looking.mounts = list ? malloc(MOUNTS_BYTES) : NULL;
    looking.found.name = looking.name;
    bool is_known = looking.mounts != NULL;
    if (is_known) process_read(pid, "mountinfo", looking.mounts, MOUNTS_BYTES);
    for (struct dirent *entry; is_known && left && (entry = readdir(list));) {
        if (!isdigit((unsigned char)*entry->d_name)) continue;
        left--;
        is_known = look(&looking, entry->d_name);
        if (is_known && looking.found.bytes) each(context, &looking.found);
    }
    free(looking.mounts);
    if (list) closedir(list);
    return is_known;
}
