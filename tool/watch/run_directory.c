// SPDX-License-Identifier: Apache-2.0
// A file of its own, and small: nobody else asks who has a file open.
#include "tool/watch/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/packed.h"
#include "tool/base/text.h"
#include "tool/model/reader.h"
#include "tool/model/run.h"
#include "tool/model/run_row.h"
#include "tool/watch/memory.h"

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
    return run_row_is_file_name(strrchr(path, '/') + 1) || run_has_index(path);
}

// What would be taken for a recording that exists, to be numbered beside: in /dev nobody wants one.
static bool check_kind(const char *path, struct error *error) {
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return true;
    const char *kind = S_ISFIFO(status.st_mode)   ? "a FIFO"
                       : S_ISSOCK(status.st_mode) ? "a socket"
                                                  : "a device";
    return error_set(error, "%s: is %s: a recording needs a regular file", path, kind);
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
static bool number_until_free(struct run_directory *directory, struct error *error) {
    const int most_attempts = 10000;
    char *path = directory->path, wanted[PATH_MAX];
    snprintf(wanted, sizeof wanted, "%s", path);
    char *dot = strrchr(wanted, '.');
    if (!dot || strchr(dot, '/')) dot = wanted + strlen(wanted);
    if (exists(path) && !directory->taken[0])
        snprintf(directory->taken, sizeof directory->taken, "%s", text_base_name(path));
    for (int attempt = 1; exists(path); attempt++) {
        if (attempt > most_attempts) return error_set(error, "%s: too many recordings", wanted);
        snprintf(path, sizeof directory->path, "%.*s.%d%s", (int)(dot - wanted), wanted, attempt,
                 dot);
    }
    return true;
}

bool run_directory_choose(struct run_directory *directory, const char *output, const char *name,
                          int pid, struct error *error) {
    char here[PATH_MAX] = "", file[PATH_MAX];
    *directory = (struct run_directory){.index = -1, .reserve = -1};
    snprintf(file, sizeof file, "%s.%d.cairn", name, pid);
    if (!getcwd(here, sizeof here) && !(output && output[0] == '/'))
        return error_set(error, "the current directory cannot be read: %s", strerror(errno));
    if (!output)
        snprintf(directory->path, sizeof directory->path, "%s/%s", here, file);
    else
        snprintf(directory->path, sizeof directory->path, "%s%s%s", output[0] == '/' ? "" : here,
                 output[0] == '/' ? "" : "/", output);
    size_t length = strlen(directory->path);
    const bool is_of_directory = directory->path[length - 1] == '/';
    while (length > 1 && directory->path[length - 1] == '/') directory->path[--length] = 0;
    if (is_of_directory && !is_directory(directory->path))
        return error_set(error, "%s: %s", output,
                         exists(directory->path) ? "not a directory" : "no such directory");
    if (output && is_directory(directory->path) && !is_run(directory->path))
        snprintf(directory->path + length, sizeof directory->path - length, "/%s", file);
    if (strlen(directory->path) + sizeof ".10000.save" + NAME_MAX >= CAIRN_TEXT_PATH)
        return error_set(error, "%s: path too long", directory->path);
    return check_kind(directory->path, error) && check_writable(directory->path, error) &&
           number_until_free(directory, error);
}

// Some fifty lines of the index. If the file system has no unnamed files, or no room for it,
// there is no reserve.
static int take_reserve(const char *path) {
    const off_t reserve_bytes = 16 << 10;
    int file = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0 && fallocate(file, 0, 0, reserve_bytes) == 0) return file;
    if (file >= 0) close(file);
    return -1;
}

static bool give_reserve(struct run_directory *directory) {
    if (directory->reserve < 0) return false;
    close(directory->reserve);
    directory->reserve = -1;
    return true;
}

bool run_directory_make(struct run_directory *directory, struct error *error) {
    while (mkdir(directory->path, 0700) != 0) {
        if (errno != EEXIST) return error_set(error, "%s: %s", directory->path, strerror(errno));
        if (!number_until_free(directory, error)) return false;
    }
    directory->is_made = true;
    directory->reserve = take_reserve(directory->path);
    return true;
}

void run_directory_path_of(const struct run_directory *directory, const char *file_name, char *path,
                           size_t size) {
    snprintf(path, size, "%s/%s", directory->path, file_name);
}

bool run_directory_is_taken(const struct run_directory *directory, const char *file_name) {
    char path[PATH_MAX];
    run_directory_path_of(directory, file_name, path, sizeof path);
    return exists(path);
}

bool run_directory_save(struct run_directory *directory, const struct memory *memory,
                        const struct memory_end *end, const char *file_name, struct error *error) {
    char path[PATH_MAX];
    run_directory_path_of(directory, file_name, path, sizeof path);
    if (!memory_save(memory, end, path, error)) {
        // the run's path is what was asked for, though until its end it is a directory
        struct error why = *error;
        const char *reason = why.text + (strstr(why.text, path) == why.text ? strlen(path) : 0);
        snprintf(directory->lost_because, sizeof directory->lost_because, "%.*s",
                 (int)sizeof directory->lost_because - 1, reason + strspn(reason, ": "));
        return error_set(error, "%s%s (the recording %s could not be written)", directory->path,
                         reason, file_name);
    }
    if (!directory->only[0]) snprintf(directory->only, sizeof directory->only, "%s", file_name);
    return true;
}

void run_directory_note_lost(struct run_directory *directory, struct run_row *row) {
    size_t used = strlen(directory->lost_names);
    char name[RUN_TEXT_MAX + sizeof ", 4294967295"];
    int length =
        snprintf(name, sizeof name, "%s%s %" PRIu32, used ? ", " : "", row->name, row->pid);
    directory->lost_count++;
    if (used + (size_t)length < sizeof directory->lost_names)
        memcpy(directory->lost_names + used, name, (size_t)length + 1);
    else
        directory->has_unnamed = true;
    memcpy(row->problem, directory->lost_because, sizeof row->problem);
}

// A part of a line that found no room is taken back.
static bool write_line(int index, const char *line, size_t size) {
    off_t end = lseek(index, 0, SEEK_END);
    ssize_t done = write(index, line, size);
    if (done == (ssize_t)size) return true;
    int reason = done < 0 ? errno : ENOSPC;
    if (done > 0 && ftruncate(index, end) != 0) return false;
    errno = reason;
    return false;
}

static bool write_index(struct run_directory *directory, const char *line, size_t size,
                        struct error *error) {
    if (write_line(directory->index, line, size)) return true;
    if (give_reserve(directory) && write_line(directory->index, line, size)) return true;
    return error_set(error, "%s/%s: %s", directory->path, RUN_INDEX_NAME, strerror(errno));
}

// Appears with its first lines complete; from then on it grows.
static bool make_index(struct run_directory *directory, struct error *error) {
    char path[PATH_MAX], temporary[PATH_MAX];
    run_directory_path_of(directory, RUN_INDEX_NAME, path, sizeof path);
    run_directory_path_of(directory, RUN_INDEX_NAME ".save", temporary, sizeof temporary);
    const int flags = O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
    directory->index = open(temporary, flags, 0600);
    if (directory->index < 0 && give_reserve(directory))
        directory->index = open(temporary, flags, 0600);
    if (directory->index < 0) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_written =
        write_index(directory, directory->first_line, directory->first_line_bytes, error);
    if (is_written && rename(temporary, path) == 0) return true;
    if (is_written) error_set(error, "%s: %s", path, strerror(errno));
    unlink(temporary);
    close(directory->index);
    directory->index = -1;
    return false;
}

static size_t first_lines(const struct run_row *row, char *out) {
    size_t used = run_row_heading(out);
    return used + (row ? run_row_print(row, out + used) : 0);
}

bool run_directory_add_row(struct run_directory *directory, const struct run_row *row,
                           struct error *error) {
    char line[RUN_LINE_MAX];
    if (!directory->row_count++) {
        directory->first_line_bytes = first_lines(row, directory->first_line);
        return !*row->problem || make_index(directory, error);
    }
    size_t size = run_row_print(row, line);
    if (directory->index < 0 && !make_index(directory, error)) return false;
    return write_index(directory, line, size, error);
}

// The file at `aside` and the directory at the path change places; then the directory goes.
static bool exchange(const struct run_directory *directory, const char *aside) {
    if (renameat2(AT_FDCWD, aside, AT_FDCWD, directory->path, RENAME_EXCHANGE) == 0) {
        if (rmdir(aside) == 0) return true;
        renameat2(AT_FDCWD, aside, AT_FDCWD, directory->path, RENAME_EXCHANGE);
        return false;
    }
    return rmdir(directory->path) == 0 && rename(aside, directory->path) == 0;
}

// False if the directory has to stay: then it is as before.
static bool collapse(struct run_directory *directory) {
    char inside[PATH_MAX], aside[PATH_MAX];
    run_directory_path_of(directory, directory->only, inside, sizeof inside);
    snprintf(aside, sizeof aside, "%s.save", directory->path);
    if (exists(aside) || rename(inside, aside) != 0) return false;
    if (exchange(directory, aside)) return true;
    rename(aside, inside);
    return false;
}

// Removes the directory of a run of which nothing could be kept, but for an index that says so.
static bool remove_empty(struct run_directory *directory) {
    char index[PATH_MAX];
    run_directory_path_of(directory, RUN_INDEX_NAME, index, sizeof index);
    if (directory->index >= 0) {
        close(directory->index);
        directory->index = -1;
        unlink(index);
    }
    return rmdir(directory->path) == 0;
}

bool run_directory_finish(struct run_directory *directory, bool is_shared, struct error *error) {
    bool is_ok = true;
    if (!directory->is_made) return true;
    give_reserve(directory);
    bool is_single = !is_shared && directory->row_count <= 1 && !directory->lost_count;
    bool is_nothing = !directory->only[0] && !is_shared && directory->row_count <= 1;
    if (is_nothing && remove_empty(directory)) {
        directory->is_made = false;
        return true;
    }
    bool has_file = is_single && directory->only[0] && collapse(directory);
    if (!has_file && directory->index < 0) {
        if (!directory->row_count)
            directory->first_line_bytes = first_lines(NULL, directory->first_line);
        is_ok = make_index(directory, error);
    }
    if (directory->index >= 0) close(directory->index);
    directory->index = -1;
    return is_ok;
}

// --- recordings that processes wrote themselves

enum { DISK_BLOCK_BYTES = 512 };

// The kernel grants a lease for reading only if no process has the file open or mapped for writing.
static bool is_written_to(int file) {
    if (fcntl(file, F_SETLEASE, F_RDLCK) != 0) return true;
    fcntl(file, F_SETLEASE, F_UNLCK);
    return false;
}

// A file that the tool saved is packed, or has a status, which no process has of itself; what one
// that goes on has as its last checkpoint has neither an end nor holes.
static bool is_leftover(int file, const struct stat *status, const struct cairn_header *header) {
    bool has_end = header->state == CAIRN_STATE_ENDED || header->state == CAIRN_STATE_STOPPED;
    bool has_holes = status->st_blocks * DISK_BLOCK_BYTES < status->st_size / 2;
    return memcmp(header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES) == 0 &&
           !cairn_is_packed(header->version) && !header->has_exit && (has_end || has_holes) &&
           !is_written_to(file);
}

static bool add_row(struct run_directory *directory, const char *name, const char *path,
                    struct error *error) {
    struct recording recording;
    struct run_row row;
    if (!recording_open(path, &recording, error)) return false;
    run_row_of(&recording, &row);
    recording_close(&recording);
    snprintf(row.file, sizeof row.file, "%s", name);
    return run_directory_add_row(directory, &row, error);
}

static bool take_file(struct run_directory *directory, const char *name, const char *path, int file,
                      struct error *error) {
    const struct memory_end end = {.is_over = true};
    struct memory memory = {.file = file};
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size < (off_t)CAIRN_HEADER_BYTES)
        return true;
    memory.bytes = (uint64_t)status.st_size;
    void *mapping = mmap(NULL, memory.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (mapping == MAP_FAILED) return true;
    memory.header = mapping;
    bool is_ok = true;
    if (is_leftover(file, &status, memory.header))
        is_ok = memory_save(&memory, &end, path, error) && add_row(directory, name, path, error);
    munmap(mapping, memory.bytes);
    return is_ok;
}

static bool is_recording_name(const char *name) {
    static const char ending[] = ".cairn";
    size_t length = strlen(name);
    return length >= sizeof ending && length < RUN_TEXT_MAX &&
           strcmp(name + length - (sizeof ending - 1), ending) == 0;
}

bool run_directory_take_leftovers(struct run_directory *directory, struct error *error) {
    DIR *entries = directory->is_made ? opendir(directory->path) : NULL;
    struct error problem = {0};
    if (!entries) return true;
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        char path[PATH_MAX];
        if (!is_recording_name(entry->d_name)) continue;
        run_directory_path_of(directory, entry->d_name, path, sizeof path);
        int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        bool is_ok = take_file(directory, entry->d_name, path, file, error);
        if (!is_ok && !problem.text[0]) problem = *error;
        close(file);
    }
    closedir(entries);
    *error = problem;
    return !problem.text[0];
}
