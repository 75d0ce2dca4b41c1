// SPDX-License-Identifier: Apache-2.0
#include "tool/base/unnamed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/base/text.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define PREFIX "memfd:"

const char *const unnamed_file_places[UNNAMED_FILE_PLACES] = {"/dev/shm", "/tmp", "/var/tmp"};

void unnamed_file_path(char path[NAME_MAX], const char *place, const char *name) {
    snprintf(path, NAME_MAX, "%s/" PREFIX "%s-%d", place, name, (int)getpid());
}

// A name that is there already is a leftover of a process with this number, or somebody's trap: the
// next place has none.
static int make_removed(const char *name) {
    char path[NAME_MAX];
    for (size_t i = 0; i < UNNAMED_FILE_PLACES; i++) {
        unnamed_file_path(path, unnamed_file_places[i], name);
        int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0) continue;
        if (unlink(path) == 0) return file;
        close(file);
    }
    return -1;
}

int unnamed_file_make(const char *name) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int file = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    if (file < 0 && errno == EINVAL) file = memfd_create(name, flags);
    return file < 0 && errno == ENOSYS ? make_removed(name) : file;
}

bool unnamed_file_is_called(const char *mapping, const char *name) {
    const char *base = text_base_name(mapping);
    const size_t prefix = sizeof PREFIX - 1;
    return *mapping == '/' && !strncmp(base, PREFIX, prefix) &&
           !strncmp(base + prefix, name, strlen(name));
}
