// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/allocators.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#else
#define TRIPLET "aarch64-linux-gnu"
#endif

const char *const allocator_names[] = {"glibc", "jemalloc", "tcmalloc", "mimalloc", NULL};

// As distributions name them, the newest interface first.
static const struct {
    const char *name, *files[4];
} libraries[] = {
    {"jemalloc", {"libjemalloc.so.2", "libjemalloc.so.1", "libjemalloc.so"}},
    {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so"}},
    {"mimalloc", {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"}},
};

static const char *const places[] = {"/usr/local/lib", "/usr/lib/" TRIPLET, "/lib/" TRIPLET,
                                     "/usr/lib64", "/usr/lib"};

static bool find_library(const char *const *files, char path[PATH_MAX]) {
    for (size_t file = 0; file < 4 && files[file]; file++)
        for (size_t place = 0; place < sizeof places / sizeof *places; place++) {
            snprintf(path, PATH_MAX, "%s/%s", places[place], files[file]);
            if (access(path, R_OK) == 0) return true;
        }
    return false;
}

bool allocator_find(const char *name, char path[PATH_MAX], struct error *error) {
    *path = 0;
    if (!strcmp(name, allocator_names[0])) return true;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (strcmp(name, libraries[i].name) != 0) continue;
        if (find_library(libraries[i].files, path)) return true;
        return error_set(error, "%s is not installed here (%s is in no directory of libraries)",
                         name, libraries[i].files[0]);
    }
    if (!strchr(name, '/'))
        return error_set(
            error,
            "there is no allocator \"%s\", but glibc, jemalloc, tcmalloc, mimalloc, or "
            "the path of a library",
            name);
    if (strpbrk(name, " :"))
        return error_set(error, "%s: LD_PRELOAD allows no space or colon", name);
    snprintf(path, PATH_MAX, "%s", name);
    return access(path, R_OK) == 0 || error_set(error, "%s: no such library", name);
}
