// SPDX-License-Identifier: Apache-2.0
#include "tool/events/log_recording.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/events/event_log.h"
#include "tool/model/reader.h"

// The recording of the same process: its pid and start are the log's.
static bool is_of_log(const char *path, const struct cairn_event_file *file) {
    struct recording recording;
    if (access(path, R_OK) != 0 || !recording_open(path, &recording, NULL)) return false;
    bool is_it =
        recording.header.pid == file->pid && recording.header.start_unix_ns == file->start_unix_ns;
    recording_close(&recording);
    return is_it;
}

// DIRECTORY/NAME, or DIRECTORY/NAME/INSIDE.
static bool try(const char *directory, int length, const char *name, const char *inside,
                const struct cairn_event_file *file, char path[PATH_MAX]) {
    if (!*name || strchr(name, '/') || strchr(inside, '/')) return false;
    snprintf(path, PATH_MAX, "%.*s%s%s%s", length, directory, name, *inside ? "/" : "", inside);
    return is_of_log(path, file);
}

static bool try_all(const char *log, const struct cairn_event_file *file, char path[PATH_MAX]) {
    const char *name = text_base_name(log);
    int length = (int)(name - log);
    char stem[NAME_MAX + 1];
    static const char suffix[] = ".events";
    size_t name_length = strlen(name), suffix_length = sizeof suffix - 1;
    if (try(log, length, file->recording, "", file, path) ||
        try(log, length, file->recording, file->recording_in_run, file, path) ||
        try(log, length, file->recording_in_run, "", file, path))
        return true;
    if (name_length <= suffix_length || strcmp(name + name_length - suffix_length, suffix) != 0)
        return false;
    snprintf(stem, sizeof stem, "%.*s.cairn", (int)(name_length - suffix_length), name);
    return try(log, length, stem, "", file, path);
}

bool log_recording_find(const char *log, char path[PATH_MAX], struct error *error) {
    char safe[NAME_MAX];
    struct event_log *opened = event_log_open(log, error);
    if (!opened) return false;
    const struct cairn_event_file file = event_log_facts(opened)->file;
    event_log_close(opened);
    if (try_all(log, &file, path)) return true;
    text_escape(safe, sizeof safe, file.recording);
    return error_set(error, "%s: the recording of this log is not beside it (it was %s)", log,
                     safe);
}
