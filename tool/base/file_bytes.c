// SPDX-License-Identifier: Apache-2.0
#include "tool/base/file_bytes.h"

#include <errno.h>
#include <unistd.h>

bool file_write_at(int file, const void *bytes, size_t count, uint64_t at) {
    const char *from = bytes;
    while (count) {
        ssize_t done = pwrite(file, from, count, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return false;
        from += done;
        at += (uint64_t)done;
        count -= (size_t)done;
    }
    return true;
}

bool file_read_at(int file, void *bytes, size_t count, uint64_t at) {
    char *to = bytes;
    while (count) {
        ssize_t done = pread(file, to, count, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = 0;
        if (done <= 0) return false;
        to += done;
        at += (uint64_t)done;
        count -= (size_t)done;
    }
    return true;
}
