// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/mapped_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/proc/maps.h"
#include "tool/proc/process.h"

// Opens what is a plain file, and that one: devices have numbers of their own on some file systems,
// so that they are not compared.
static int open_same(const char *path, uint64_t inode) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_same = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                   (!inode || status.st_ino == inode);
    if (file >= 0 && !is_same) close(file);
    return is_same ? file : -1;
}

int mapped_file_open_known(pid_t pid, const struct mapping *mapping) {
    enum { RANGE_BYTES = 64 };
    char range[RANGE_BYTES], path[PROCESS_PATH_BYTES], below[PATH_MAX + PROCESS_PATH_BYTES];
    if (!mapping_is_file(mapping)) return -1;
    snprintf(range, sizeof range, "map_files/%" PRIx64 "-%" PRIx64, mapping->start, mapping->end);
    int file = open_same(process_path(path, pid, range), 0);
    if (file < 0) file = open_same(process_path(path, pid, "exe"), mapping->inode);
    if (file >= 0 || mapping_is_deleted(mapping)) return file;
    snprintf(below, sizeof below, "%s%s", process_path(path, pid, "root"), mapping->name);
    return open_same(below, mapping->inode);
}

int mapped_file_open(pid_t pid, uint64_t address) {
    char name[PATH_MAX];
    struct mapping mapping;
    return maps_find(pid, address, &mapping, name) ? mapped_file_open_known(pid, &mapping) : -1;
}
