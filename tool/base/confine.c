// SPDX-License-Identifier: Apache-2.0
#include "tool/base/confine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *const *allowed;
static size_t allowed_count;

void confine_to(char *const *directories, size_t count) {
    allowed = directories;
    allowed_count = count;
}

bool confine_is_on(void) {
    return allowed_count;
}

bool confine_is_below(const char *path, const char *directory) {
    size_t length = strlen(directory);
    while (length && directory[length - 1] == '/') length--;
    return !strncmp(path, directory, length) && (!path[length] || path[length] == '/');
}

bool confine_allows(int descriptor, struct error *error) {
    char link[64], path[PATH_MAX];
    struct stat status;
    if (!allowed_count) return true;
    if (!fstat(descriptor, &status) && !status.st_nlink) return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    for (size_t i = 0; length > 0 && i < allowed_count; i++)
        if (confine_is_below(path, allowed[i])) return true;
    return error_set(error, "lies outside of the directories that may be read");
}
