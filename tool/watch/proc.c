// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

size_t proc_read(pid_t pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0) close(file);
    if (length < 0) length = 0;
    text[length] = 0;
    return (size_t)length;
}
