// SPDX-License-Identifier: Apache-2.0
// Files are written under a temporary name and renamed, so that two commands at once do no harm:
// the last one wins. Reading a file renews its time, which is its age for the bound.
#include "tool/symbol/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".symbols"
#define FILE_BYTES_MAX ((off_t)1 << 30)

static bool path_of(char path[PATH_MAX], const char *directory,
                    const struct symbol_module *module) {
    char hex[2 * CAIRN_BUILD_ID_MAX + 1] = "";
    bool has_key = module->build_id_bytes || module->code_key;
    if (!directory || !has_key || module->build_id_bytes > CAIRN_BUILD_ID_MAX) return false;
    for (size_t i = 0; i < module->build_id_bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", module->build_id[i]);
    if (!module->build_id_bytes) snprintf(hex, sizeof hex, "code-%016" PRIx64, module->code_key);
    int length = snprintf(path, PATH_MAX, "%s/%s" SUFFIX, directory, hex);
    return length < PATH_MAX;
}

static void *read_whole(int file, size_t *size) {
    struct stat status;
    if (fstat(file, &status) || !S_ISREG(status.st_mode)) return NULL;
    if (status.st_size <= 0 || status.st_size > FILE_BYTES_MAX) return NULL;
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size);
    size_t used = 0;
    for (ssize_t got; bytes && used < *size; used += (size_t)got)
        if ((got = read(file, bytes + used, *size - used)) <= 0) break;
    if (bytes && used == *size) return bytes;
    free(bytes);
    return NULL;
}

bool cache_load(const char *directory, const struct symbol_module *module, struct cached *cached) {
    char path[PATH_MAX];
    size_t size = 0;
    *cached = (struct cached){0};
    if (!path_of(path, directory, module)) return false;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return false;
    cached->bytes = read_whole(file, &size);
    if (cached->bytes) futimens(file, NULL);
    close(file);
    if (cached->bytes && bundle_open(&cached->bundle, cached->bytes, size) &&
        bundle_find_module(&cached->bundle, module, &cached->module))
        return true;
    cache_release(cached);
    return false;
}

void cache_release(struct cached *cached) {
    free(cached->bytes);
    cached->bytes = NULL;
}

// Makes the directory and those above it.
static bool make_directory(const char *directory) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s", directory);
    if (length >= PATH_MAX) return false;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    return !mkdir(path, 0700) || errno == EEXIST;
}

static bool write_file(const char *path, const void *bytes, size_t size) {
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.%d.part", path, (int)getpid());
    if (length >= PATH_MAX) return false;
    FILE *file = fopen(temporary, "wex");
    if (!file) return false;
    bool is_written = fwrite(bytes, 1, size, file) == size;
    is_written = !fclose(file) && is_written;
    if (is_written && !rename(temporary, path)) return true;
    unlink(temporary);
    return false;
}

struct entry {
    char name[NAME_MAX + 1];
    uint64_t bytes;
    struct timespec time;
};

static int newest_first(const void *left, const void *right) {
    const struct timespec *a = &((const struct entry *)left)->time;
    const struct timespec *b = &((const struct entry *)right)->time;
    if (a->tv_sec != b->tv_sec) return a->tv_sec < b->tv_sec ? 1 : -1;
    return (a->tv_nsec < b->tv_nsec) - (a->tv_nsec > b->tv_nsec);
}

static void remove_oldest(const char *directory, uint64_t bytes_max) {
    ARRAY(struct entry) entries = {0};
    DIR *list = opendir(directory);
    if (!list) return;
    for (struct dirent *item; (item = readdir(list));) {
        struct stat status;
        const char *suffix = strstr(item->d_name, SUFFIX);
        if (!suffix || fstatat(dirfd(list), item->d_name, &status, AT_SYMLINK_NOFOLLOW)) continue;
        struct entry *entry = array_push(&entries);
        if (!entry) break;
        *entry = (struct entry){.bytes = (uint64_t)status.st_size, .time = status.st_mtim};
        snprintf(entry->name, sizeof entry->name, "%s", item->d_name);
    }
    if (entries.count) qsort(entries.items, entries.count, sizeof *entries.items, newest_first);
    uint64_t sum = 0;
    for (size_t i = 0; i < entries.count; i++) {
        sum += entries.items[i].bytes;
        if (sum > bytes_max) unlinkat(dirfd(list), entries.items[i].name, 0);
    }
    array_free(&entries);
    closedir(list);
}

void cache_save(const char *directory, const struct bundle_part *part, uint64_t bytes_max) {
    char path[PATH_MAX];
    void *bytes;
    size_t size;
    if (!path_of(path, directory, &part->module) || !make_directory(directory)) return;
    if (!bundle_make(part, 1, &bytes, &size)) return;
    if (write_file(path, bytes, size)) remove_oldest(directory, bytes_max);
    free(bytes);
}
