// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/watch/save.h"

static bool exists(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0;
}

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// A directory that another run made, or is about to fill, is a recording, not a place for new ones.
static bool is_run(const char *path) {
    return run_row_is_file_name(strrchr(path, '/') + 1);
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
    *store = (struct store){.index = -1};
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
    if (strlen(store->path) + sizeof ".10000.save" + NAME_MAX >= CAIRN_TEXT_PATH)
        return error_set(error, "%s: path too long", store->path);
    return check_writable(store->path, error) && number_until_free(store->path, error);
}

bool store_make(struct store *store, struct error *error) {
    while (mkdir(store->path, 0700) != 0) {
        if (errno != EEXIST) return error_set(error, "%s: %s", store->path, strerror(errno));
        if (!number_until_free(store->path, error)) return false;
    }
    store->is_made = true;
    return true;
}

void store_path_of(const struct store *store, const char *file_name, char *path, size_t size) {
    snprintf(path, size, "%s/%s", store->path, file_name);
}

bool store_is_taken(const struct store *store, const char *file_name) {
    char path[PATH_MAX];
    store_path_of(store, file_name, path, sizeof path);
    return exists(path);
}

bool store_save(struct store *store, const struct memory *memory, const struct memory_end *end,
                const char *file_name, struct error *error) {
    char path[PATH_MAX];
    store_path_of(store, file_name, path, sizeof path);
    if (!memory_save(memory, end, path, error)) return false;
    if (!store->only[0]) snprintf(store->only, sizeof store->only, "%s", file_name);
    return true;
}

static bool write_index(const struct store *store, const char *line, size_t size,
                        struct error *error) {
    ssize_t done = write(store->index, line, size);
    if (done == (ssize_t)size) return true;
    return error_set(error, "%s/%s: %s", store->path, RUN_INDEX_NAME,
                     done < 0 ? strerror(errno) : "no room");
}

// Appears with its first lines complete; from then on it grows.
static bool make_index(struct store *store, struct error *error) {
    char path[PATH_MAX], temporary[PATH_MAX];
    store_path_of(store, RUN_INDEX_NAME, path, sizeof path);
    store_path_of(store, RUN_INDEX_NAME ".save", temporary, sizeof temporary);
    store->index =
        open(temporary, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->index < 0) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_written = write_index(store, store->first_line, store->first_line_bytes, error);
    if (is_written && rename(temporary, path) == 0) return true;
    if (is_written) error_set(error, "%s: %s", path, strerror(errno));
    unlink(temporary);
    return false;
}

static size_t first_lines(const struct run_row *row, char *out) {
    size_t used = run_row_heading(out);
    return used + (row ? run_row_print(row, out + used) : 0);
}

bool store_add_row(struct store *store, const struct run_row *row, struct error *error) {
    char line[RUN_LINE_MAX];
    if (!store->row_count++) {
        store->first_line_bytes = first_lines(row, store->first_line);
        return true;
    }
    size_t size = run_row_print(row, line);
    if (store->index < 0 && !make_index(store, error)) return false;
    return write_index(store, line, size, error);
}

// The file at `aside` and the directory at the path change places; then the directory goes.
static bool exchange(const struct store *store, const char *aside) {
    if (renameat2(AT_FDCWD, aside, AT_FDCWD, store->path, RENAME_EXCHANGE) == 0) {
        if (rmdir(aside) == 0) return true;
        renameat2(AT_FDCWD, aside, AT_FDCWD, store->path, RENAME_EXCHANGE);
        return false;
    }
    return rmdir(store->path) == 0 && rename(aside, store->path) == 0;
}

// False if the directory has to stay: then it is as before.
static bool collapse(struct store *store) {
    char inside[PATH_MAX], aside[PATH_MAX];
    store_path_of(store, store->only, inside, sizeof inside);
    snprintf(aside, sizeof aside, "%s.save", store->path);
    if (exists(aside) || rename(inside, aside) != 0) return false;
    if (exchange(store, aside)) return true;
    rename(aside, inside);
    return false;
}

bool store_finish(struct store *store, bool is_shared, struct error *error) {
    bool is_ok = true;
    if (!store->is_made) return true;
    bool is_single = !is_shared && store->row_count <= 1;
    if (is_single && !store->only[0] && rmdir(store->path) == 0) {
        store->is_made = false;
        return true;
    }
    bool has_file = is_single && store->only[0] && collapse(store);
    if (!has_file && store->index < 0) {
        if (!store->row_count) store->first_line_bytes = first_lines(NULL, store->first_line);
        is_ok = make_index(store, error);
    }
    if (store->index >= 0) close(store->index);
    store->index = -1;
    return is_ok;
}
