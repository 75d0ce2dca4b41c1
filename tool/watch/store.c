// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0;
}

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// A directory that an earlier run made is a recording, not a place for new ones.
static bool is_run(const char *path) {
    char index[PATH_MAX];
    snprintf(index, sizeof index, "%s/index", path);
    return exists(index);
}

static void directory_of(const char *path, char *directory) {
    const char *slash = strrchr(path, '/');
    snprintf(directory, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static bool check_writable(const char *path, struct error *error) {
    char directory[PATH_MAX];
    directory_of(path, directory);
    if (!exists(directory)) return error_set(error, "%s: no such directory", directory);
    if (!is_directory(directory)) return error_set(error, "%s: not a directory", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return error_set(error, "%s: cannot write there: %s", directory, strerror(errno));
    return true;
}

// NAME.cairn, NAME.1.cairn, NAME.2.cairn, …: the first that is free.
static bool number_until_free(char *path, struct error *error) {
    const int most_attempts = 10000;
    char wanted[PATH_MAX];
    snprintf(wanted, sizeof wanted, "%s", path);
    char *dot = strrchr(wanted, '.');
    if (!dot || strchr(dot, '/')) dot = wanted + strlen(wanted);
    for (int attempt = 1; exists(path); attempt++) {
        if (attempt > most_attempts) return error_set(error, "%s: too many recordings", wanted);
        snprintf(path, PATH_MAX, "%.*s.%d%s", (int)(dot - wanted), wanted, attempt, dot);
    }
    return true;
}

bool store_choose(struct store *store, const char *output, const char *name, int pid,
                  struct error *error) {
    char here[PATH_MAX] = "", file[PATH_MAX];
    *store = (struct store){0};
    snprintf(file, sizeof file, "%s.%d.cairn", name, pid);
    if (!getcwd(here, sizeof here) && !(output && output[0] == '/'))
        return error_set(error, "the current directory cannot be read: %s", strerror(errno));
    if (!output)
        snprintf(store->path, sizeof store->path, "%s/%s", here, file);
    else
        snprintf(store->path, sizeof store->path, "%s%s%s", output[0] == '/' ? "" : here,
                 output[0] == '/' ? "" : "/", output);
    size_t length = strlen(store->path);
    while (length > 1 && store->path[length - 1] == '/') store->path[--length] = 0;
    if (output && is_directory(store->path) && !is_run(store->path))
        snprintf(store->path + length, sizeof store->path - length, "/%s", file);
    if (strlen(store->path) + sizeof ".10000.part" >= CAIRN_TEXT_PATH)
        return error_set(error, "%s: path too long", store->path);
    return check_writable(store->path, error) && number_until_free(store->path, error);
}

void store_path_of(const struct store *store, const char *file_name, char *path, size_t size) {
    char directory[PATH_MAX];
    directory_of(store->path, directory);
    snprintf(path, size, "%s/%s", store->is_directory ? store->path : directory, file_name);
}

// The file at the path becomes a directory's first entry.
static bool become_directory(struct store *store, struct error *error) {
    char aside[PATH_MAX], inside[PATH_MAX];
    snprintf(aside, sizeof aside, "%s.part", store->path);
    snprintf(inside, sizeof inside, "%s/%s", store->path, store->first);
    if (store->is_taken && rename(store->path, aside) != 0)
        return error_set(error, "%s: %s", store->path, strerror(errno));
    if (mkdir(store->path, 0700) != 0)
        return error_set(error, "%s: %s", store->path, strerror(errno));
    store->is_directory = true;
    if (store->is_taken && rename(aside, inside) != 0)
        return error_set(error, "%s: %s", inside, strerror(errno));
    return true;
}

bool store_save(struct store *store, const struct memory *memory, const struct memory_end *end,
                const char *file_name, bool is_first, struct error *error) {
    char path[PATH_MAX];
    if (!is_first && !store->is_directory && !become_directory(store, error)) return false;
    if (store->is_directory)
        snprintf(path, sizeof path, "%s/%s", store->path, file_name);
    else
        snprintf(path, sizeof path, "%s", store->path);
    if (!memory_save(memory, end, path, error)) return false;
    if (is_first && !store->is_directory) {
        store->is_taken = true;
        snprintf(store->first, sizeof store->first, "%s", file_name);
    }
    return true;
}
