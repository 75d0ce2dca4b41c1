// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/roots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/confine.h"

bool roots_add(struct roots *roots, const char *directory, struct error *error) {
    struct stat status;
    if (roots->count == ROOTS_MAX)
        return error_set(error, "mcp: more than %d directories by --root", ROOTS_MAX);
    char *path = realpath(directory, NULL);
    bool is_directory = path && !stat(path, &status) && S_ISDIR(status.st_mode);
    if (is_directory) {
        roots->paths[roots->count++] = path;
        return true;
    }
    error_set(error, "mcp: --root %s: %s", directory, path ? "not a directory" : strerror(errno));
    free(path);
    return false;
}

void roots_free(struct roots *roots) {
    for (size_t i = 0; i < roots->count; i++) free(roots->paths[i]);
    roots->count = 0;
}

static bool is_inside(const struct roots *roots, const char *path) {
    for (size_t i = 0; i < roots->count; i++)
        if (confine_is_below(path, roots->paths[i])) return true;
    return false;
}

bool roots_find(const struct roots *roots, const char *name, char path[PATH_MAX],
                struct error *error) {
    char joined[PATH_MAX];
    bool is_absolute = *name == '/';
    for (size_t i = 0; *name && i < (is_absolute ? 1 : roots->count); i++) {
        int length = snprintf(joined, sizeof joined, "%s%s%s", is_absolute ? "" : roots->paths[i],
                              is_absolute ? "" : "/", name);
        if (length < (int)sizeof joined && realpath(joined, path) && is_inside(roots, path))
            return true;
    }
    // the same words, whether it is elsewhere or nowhere
    return error_set(error, "%s: there is no such file below %s%s", name, roots->paths[0],
                     roots->count > 1 ? " and the other roots" : "");
}

const char *roots_name(const struct roots *roots, const char *path) {
    size_t length = strlen(roots->paths[0]);
    // with a moment behind it, its own path would be that of a file beside it
    if (!strcmp(path, roots->paths[0])) return ".";
    bool is_first = confine_is_below(path, roots->paths[0]) && path[length] == '/';
    return is_first ? path + length + 1 : path;
}
