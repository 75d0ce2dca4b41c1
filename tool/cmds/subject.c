// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/subject.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/model/reader.h"

static const char suffix[] = ".cairn";

bool subject_is_recording_name(const char *name) {
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && !strcmp(name + length - suffix_length, suffix);
}

// How much a candidate speaks for itself; false if it is none.
typedef bool score_fn(const char *path, uint64_t *score);

static bool score_by_time(const char *path, uint64_t *score) {
    const uint64_t ns_per_s = 1000000000u;
    struct stat status;
    if (stat(path, &status)) return false;
    *score = (uint64_t)status.st_mtim.tv_sec * ns_per_s + (uint64_t)status.st_mtim.tv_nsec;
    return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

static bool score_by_peak(const char *path, uint64_t *score) {
    struct recording recording;
    if (!recording_open(path, &recording, NULL)) return false;
    const struct cairn_totals *totals = &recording.header.totals;
    uint64_t live = totals->live_bytes > 0 ? (uint64_t)totals->live_bytes : 0;
    *score = live > totals->peak_bytes ? live : totals->peak_bytes;
    recording_close(&recording);
    return true;
}

// The candidate with the highest score; equal ones by name, so that the choice is always the same.
static bool find_best(const char *directory, score_fn *score_of, struct subject *subject,
                      struct error *error) {
    DIR *entries = opendir(directory);
    if (!entries) return error_set(error, "%s: %s", directory, strerror(errno));
    size_t count = 0;
    uint64_t best = 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[PATH_MAX];
        uint64_t score;
        bool is_here = !strcmp(directory, ".");
        int length = snprintf(path, sizeof path, "%s%s%s", is_here ? "" : directory,
                              is_here ? "" : "/", entry->d_name);
        bool is_candidate = subject_is_recording_name(entry->d_name) && length < (int)sizeof path;
        if (!is_candidate || !score_of(path, &score)) continue;
        bool is_better = score > best || (score == best && strcmp(path, subject->path) < 0);
        if (!count++ || is_better) {
            best = score;
            memcpy(subject->path, path, sizeof path);
        }
    }
    closedir(entries);
    return count > 0;
}

static bool find_in_directory(const char *directory, struct subject *subject, struct error *error) {
    snprintf(subject->directory, sizeof subject->directory, "%s", directory);
    error_set(error, "%s: no recording in this directory", subject->directory);
    return find_best(subject->directory, score_by_peak, subject, error);
}

bool subject_find(const char *word, struct subject *subject, struct error *error) {
    *subject = (struct subject){0};
    struct stat status;
    if (!word) {
        error_set(error, "no recording (*.cairn) in this directory; "
                         "make one with: cairn run PROGRAM");
        if (!find_best(".", score_by_time, subject, error)) return false;
        word = subject->path;
    }
    if (stat(word, &status)) return error_set(error, "%s: %s", word, strerror(errno));
    if (S_ISDIR(status.st_mode)) return find_in_directory(word, subject, error);
    if (word != subject->path) snprintf(subject->path, sizeof subject->path, "%s", word);
    return true;
}
