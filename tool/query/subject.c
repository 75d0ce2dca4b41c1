// SPDX-License-Identifier: Apache-2.0
#include "tool/query/subject.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/events/event_log.h"
#include "tool/events/log_recording.h"
#include "tool/go/heap.h"
#include "tool/heap/recorded.h"
#include "tool/query/live.h"
#include "tool/query/name_options.h"

// `is_right`: it is a directory, or starts like a recording.
static bool time_of(const char *path, uint64_t *time_ns, bool *is_right) {
    const uint64_t ns_per_s = 1000000000u;
    struct stat status;
    if (stat(path, &status)) return false;
    *time_ns = (uint64_t)status.st_mtim.tv_sec * ns_per_s + (uint64_t)status.st_mtim.tv_nsec;
    *is_right = S_ISDIR(status.st_mode) || live_is_recording(path);
    return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

// The newest of the files that were seen, and its time; of equally old ones the first by name.
struct newest {
    char path[PATH_MAX];
    uint64_t time_ns;
    size_t count;
};

static void note_newest(struct newest *newest, const char *path, uint64_t time_ns) {
    bool is_newer =
        time_ns > newest->time_ns || (time_ns == newest->time_ns && strcmp(path, newest->path) < 0);
    if (newest->count++ && !is_newer) return;
    newest->time_ns = time_ns;
    snprintf(newest->path, sizeof newest->path, "%s", path);
}

// Newer than the recording that is taken.
static void tell_passed_over(const struct newest *other, const struct newest *taken) {
    char safe[PATH_MAX];
    if (!other->count || !taken->count || other->time_ns < taken->time_ns) return;
    text_escape(safe, sizeof safe, other->path);
    fprintf(stderr, "cairn: %s is empty or no recording: an older one is taken\n", safe);
}

// The newest recording of a directory, always the same one; only without any, a file that is merely
// called so. `count` becomes their number.
static bool find_newest(const char *directory, struct subject *subject, size_t *count,
                        struct error *error) {
    struct newest right = {.count = 0}, other = {.count = 0};
    DIR *entries = opendir(directory);
    if (!entries) return error_set(error, "%s: %s", directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[PATH_MAX];
        uint64_t time_ns;
        bool is_here = !strcmp(directory, ".");
        int length = snprintf(path, sizeof path, "%s%s%s", is_here ? "" : directory,
                              is_here ? "" : "/", entry->d_name);
        bool is_right, is_candidate = run_row_is_file_name(entry->d_name);
        if (!is_candidate || length >= (int)sizeof path || !time_of(path, &time_ns, &is_right))
            continue;
        note_newest(is_right ? &right : &other, path, time_ns);
    }
    closedir(entries);
    tell_passed_over(&other, &right);
    *count = right.count ? right.count : other.count;
    memcpy(subject->path, right.count ? right.path : other.path, sizeof subject->path);
    return true;
}

// A run that has just begun has no file yet: the only process stands for it as it is now.
static bool find_live(const char *directory, struct subject *subject, struct error *error) {
    struct live_list list;
    if (!live_list_of_run(directory, &list, error)) return false;
    size_t count = list.processes.count;
    snprintf(subject->name, sizeof subject->name, "%s", directory);
    if (count == 1)
        snprintf(subject->path, sizeof subject->path, "%s", list.processes.items[0].path);
    int first = count ? list.processes.items[0].pid : 0;
    array_free(&list.processes);
    if (count == 1) return true;
    if (!count) return error_set(error, "%s: no recording in this directory", directory);
    return error_set(
        error,
        "%s: this run has just begun, and its recordings are not saved yet; give the pid "
        "of one of its %zu processes, as %d (cairn top lists them)",
        directory, count, first);
}

static bool find_in_directory(const char *directory, struct subject *subject, struct error *error) {
    struct subject inside = {0};
    size_t count = 0;
    bool has_index = run_has_index(directory);
    if (!has_index && !find_newest(directory, &inside, &count, error)) return false;
    if (!has_index && !count) return find_live(directory, subject, error);
    struct stat status;
    bool is_run_alone = !has_index && count == 1 && !stat(inside.path, &status) &&
                        S_ISDIR(status.st_mode) && run_has_index(inside.path);
    if (is_run_alone) {
        *subject = (struct subject){.is_run = true};
        snprintf(subject->path, sizeof subject->path, "%s", inside.path);
        return true;
    }
    subject->is_run = has_index || count > 1;
    const char *path = subject->is_run ? directory : inside.path;
    if (path != subject->path) snprintf(subject->path, sizeof subject->path, "%s", path);
    return true;
}

// A program of Go keeps a profile of its heap itself, which stands in for a recording.
static bool record_go(enum go_finding finding, struct go_heap *heap, char path[PATH_MAX],
                      struct error *error) {
    if (finding != GO_FOUND) return false;
    bool is_ok = go_heap_record(heap, path, error);
    go_heap_close(heap);
    return is_ok;
}

static bool find_go_in_core(const char *core_path, const struct core_image *core,
                            char path[PATH_MAX], struct error *error) {
    struct go_heap heap;
    const char *sysroot = name_options_symbols()->sysroot;
    struct error why;
    enum go_finding finding = go_heap_of_core(core, sysroot, &heap, &why);
    if (finding == GO_ABSENT)
        return error_set(error, "%s: there is no recording in this core dump", core_path);
    if (record_go(finding, &heap, path, &why)) return true;
    return error_set(error, "%s: there is no recording in this core dump, and %s", core_path,
                     why.text);
}

static bool find_in_core(const char *core_path, char path[PATH_MAX], struct error *error) {
    struct core_image core;
    struct cairn_header header;
    if (!core_open(core_path, &core, error)) return false;
    bool is_ok = core_find_recording(&core, &header)
                     ? core_copy_recording(&core, &header, path, error)
                     : find_go_in_core(core_path, &core, path, error);
    core_close(&core);
    return is_ok;
}

// `error` says already why the process has no recording.
static bool find_go(const char *word, char path[PATH_MAX], struct error *error) {
    struct go_heap heap;
    struct error why;
    pid_t pid;
    if (!running_find(word, &pid, &why)) return false;
    enum go_finding finding = go_heap_of_process(pid, &heap, &why);
    if (finding == GO_ABSENT) return false;
    const uint64_t pause_ns = finding == GO_FOUND ? heap.pause_ns : 0;
    if (!record_go(finding, &heap, path, &why)) return error_set(error, "%s", why.text);
    fprintf(stderr, "cairn: process %d was paused for %s\n", (int)pid,
            units_duration(pause_ns).text);
    return true;
}

// No file but a program's is called so: a process that is being recorded may be.
static bool find_named(const char *word, struct subject *subject, struct error *error) {
    struct live_process process;
    if (!live_choose(word, &process, error)) {
        if (find_go(word, subject->path, error)) return true;
        return error_wrap(error, "%s: no such file", word);
    }
    snprintf(subject->path, sizeof subject->path, "%s", process.path);
    return true;
}

// A recording that is called like a running process.
static void tell_file_taken(const char *word) {
    char safe[PATH_MAX];
    pid_t pid;
    bool may_be_name = !strchr(word, '/') && !run_row_is_file_name(word);
    if (!may_be_name || running_is_number(word) || !running_count(word, &pid)) return;
    text_escape(safe, sizeof safe, word);
    fprintf(stderr, "cairn: %s: the file is taken; process %d is called so too, by its pid\n", safe,
            (int)pid);
}

static bool find_path(const char *word, struct subject *subject, struct error *error) {
    *subject = (struct subject){0};
    struct stat status;
    size_t count = 0;
    if (!word) {
        if (!find_newest(".", subject, &count, error)) return false;
        if (!count)
            return error_set(error, "no recording (*.cairn) in this directory; "
                                    "make one with: cairn run PROGRAM");
        word = subject->path;
    }
    if (stat(word, &status)) {
        int why = errno;
        if (running_is_number(word))
            return live_find(word, subject->path, error) || find_go(word, subject->path, error);
        if (running_may_be(word)) return find_named(word, subject, error);
        return error_set(error, "%s: %s", word, strerror(why));
    }
    bool is_subject = word != subject->path && !running_may_be(word);
    if (is_subject) tell_file_taken(word);
    if (S_ISDIR(status.st_mode)) return find_in_directory(word, subject, error);
    if (event_log_is_one(word)) {
        snprintf(subject->log, sizeof subject->log, "%s", word);
        return log_recording_find(word, subject->path, error);
    }
    if (core_is_one(word)) return find_in_core(word, subject->path, error);
    if (running_may_be(word) && find_named(word, subject, NULL)) return true;
    if (word != subject->path) snprintf(subject->path, sizeof subject->path, "%s", word);
    return true;
}

bool subject_find(const char *word, struct subject *subject, struct error *error) {
    if (!find_path(word, subject, error)) return false;
    bool is_memory = !strncmp(subject->path, "/proc/", strlen("/proc/"));
    if (!*subject->name)
        snprintf(subject->name, sizeof subject->name, "%s", is_memory ? word : subject->path);
    return true;
}

const char *subject_cut_snapshot(char *word) {
    char *at = strrchr(word, '@');
    if (!at || at == word || !at[1] || !access(word, F_OK)) return NULL;
    *at = 0;
    return at + 1;
}

static bool enter_run(struct subject *subject, const struct run *run, const char *word,
                      struct error *error) {
    size_t index = 0;
    if (!run_find(run, word, &index, error)) return false;
    const struct run_row *row = &run->rows.items[index];
    if (!*row->file)
        return error_set(error,
                         "%s: no recording of \"%s\" (process %u) was kept, since it is small",
                         run->directory, row->name, row->pid);
    subject->is_run = false;
    int length = snprintf(subject->path, sizeof subject->path, "%s/%s", run->directory, row->file);
    memcpy(subject->name, subject->path, sizeof subject->name);
    return length < (int)sizeof subject->path || error_set(error, "%s: path too long", row->file);
}

// A single recording as a run of one.
static bool check_name(const char *path, const char *word, struct error *error) {
    struct recording recording;
    struct run_row row;
    struct run run = {.rows = {.items = &row, .count = 1}};
    size_t index;
    if (!recording_open(path, &recording, error)) return false;
    run_row_of(&recording, &row);
    recording_close(&recording);
    snprintf(run.directory, sizeof run.directory, "%s", path);
    return run_find(&run, word, &index, error);
}

bool subject_enter(struct subject *subject, const char *word, struct error *error) {
    struct run run;
    if (!subject->is_run) return check_name(subject->path, word, error);
    if (!run_open(subject->path, &run, error)) return false;
    bool is_found = enter_run(subject, &run, word, error);
    run_close(&run);
    return is_found;
}
