// SPDX-License-Identifier: Apache-2.0
#include "tool/events/log_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/text.h"
#include "tool/events/event_log.h"
#include "tool/model/reader.h"

// --- as the log is made

static bool directory_of(const char *path, char directory[PATH_MAX], struct stat *status) {
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return realpath(above, directory) && stat(directory, status) == 0;
}

void log_recording_note(struct cairn_event_file *file, const char *recording, const char *log) {
    char directory[PATH_MAX], of_log[PATH_MAX];
    struct stat its, that_of_log;
    if (!directory_of(recording, directory, &its) || !directory_of(log, of_log, &that_of_log))
        return;
    if (its.st_dev == that_of_log.st_dev && its.st_ino == that_of_log.st_ino) return;
    snprintf(file->directory, sizeof file->directory, "%s", directory);
    const size_t end = CAIRN_EVENT_FILE_BYTES + strlen(file->directory) + 1;
    const size_t word = sizeof(uint64_t);
    file->header_bytes = (uint32_t)((end + word - 1) / word * word);
}

// --- as it is read

// The recording of the same process: its pid and start are the log's.
static bool is_of_log(const char *path, const struct cairn_event_file *file) {
    struct recording recording;
    if (!recording_open(path, &recording, NULL)) return false;
    bool is_it =
        recording.header.pid == file->pid && recording.header.start_unix_ns == file->start_unix_ns;
    recording_close(&recording);
    return is_it;
}

// Where it was looked for, and what else lies there.
struct search {
    const struct cairn_event_file *file;
    char *path;      // PATH_MAX
    bool has_other;  // a recording of that name is of another process
};

// DIRECTORY/NAME, or DIRECTORY/NAME/INSIDE; `directory` ends with a slash, or is empty.
static bool try(struct search *search, const char *directory, const char *name,
                const char *inside) {
    struct stat status;
    if (!*name || strchr(name, '/') || strchr(inside, '/')) return false;
    int length =
        snprintf(search->path, PATH_MAX, "%s%s%s%s", directory, name, *inside ? "/" : "", inside);
    if (length >= PATH_MAX || stat(search->path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    if (is_of_log(search->path, search->file)) return true;
    search->has_other = true;
    return false;
}

static bool try_names(struct search *search, const char *directory) {
    const struct cairn_event_file *file = search->file;
    return try(search, directory, file->recording, "") ||
           try(search, directory, file->recording, file->recording_in_run) ||
           try(search, directory, file->recording_in_run, "");
}

static bool try_beside(struct search *search, const char *log) {
    static const char suffix[] = ".events";
    char directory[PATH_MAX], stem[NAME_MAX + 1];
    const char *name = text_base_name(log);
    const size_t name_length = strlen(name), suffix_length = sizeof suffix - 1;
    snprintf(directory, sizeof directory, "%.*s", (int)(name - log), log);
    if (try_names(search, directory)) return true;
    if (name_length <= suffix_length || strcmp(name + name_length - suffix_length, suffix) != 0)
        return false;
    snprintf(stem, sizeof stem, "%.*s.cairn", (int)(name_length - suffix_length), name);
    return try(search, directory, stem, "");
}

// Where it was as the log was made; a log may say anything.
static bool try_where_it_was(struct search *search) {
    char directory[PATH_MAX];
    const char *said = search->file->directory;
    if (*said != '/' || snprintf(directory, sizeof directory, "%s/", said) >= PATH_MAX)
        return false;
    return try_names(search, directory);
}

static bool explain(const struct search *search, const char *log, struct error *error) {
    char name[NAME_MAX], directory[PATH_MAX];
    const char *other = search->has_other ? "; what is called so there is another process's" : "";
    text_escape(name, sizeof name, search->file->recording);
    text_escape(directory, sizeof directory, search->file->directory);
    if (*directory)
        return error_set(error,
                         "%s: its recording, %s, is not beside it, and not in %s%s: put it "
                         "beside the log",
                         log, name, directory, other);
    return error_set(error, "%s: its recording, %s, is not beside it%s: put it there", log, name,
                     other);
}

bool log_recording_find(const char *log, char path[PATH_MAX], struct error *error) {
    struct event_log *opened = event_log_open(log, error);
    if (!opened) return false;
    const struct cairn_event_file file = event_log_facts(opened)->file;
    event_log_close(opened);
    struct search search = {.file = &file, .path = path};
    return try_beside(&search, log) || try_where_it_was(&search) || explain(&search, log, error);
}
