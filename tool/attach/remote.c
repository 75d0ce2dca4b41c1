// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool remote_open(struct remote *remote, pid_t pid, struct error *error) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    *remote = (struct remote){.pid = pid, .memory = open(path, O_RDWR | O_CLOEXEC)};
    return remote->memory >= 0 || error_set(error, "%s: %s", path, strerror(errno));
}

void remote_close(struct remote *remote) {
    if (remote->memory >= 0) close(remote->memory);
    remote->memory = -1;
}

bool remote_read(const struct remote *remote, uint64_t address, void *out, size_t size) {
    uint8_t *at = out;
    if (address > INT64_MAX) return !size;
    while (size) {
        ssize_t got = pread(remote->memory, at, size, (off_t)address);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        address += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

bool remote_write(const struct remote *remote, uint64_t address, const void *bytes, size_t size) {
    if (address > INT64_MAX) return !size;
    return pwrite(remote->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

bool remote_read_text(const struct remote *remote, uint64_t address, char *text, size_t size) {
    const uint64_t page_bytes = 4096;
    size_t used = 0;
    while (used + 1 < size) {
        size_t part = (size_t)(page_bytes - (address + used) % page_bytes);
        if (part > size - 1 - used) part = size - 1 - used;
        if (!remote_read(remote, address + used, text + used, part)) break;
        if (memchr(text + used, 0, part)) return true;
        used += part;
    }
    text[used] = 0;
    return used > 0;
}
