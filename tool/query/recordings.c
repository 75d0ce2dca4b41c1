// SPDX-License-Identifier: Apache-2.0
#include "tool/query/recordings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/text.h"
#include "tool/query/subject.h"

// What a word is searched for, and the labels of its line.
struct finding {
    struct recordings *recordings;
    size_t first_label, label_count;
    bool is_of_list;
};

static bool no_memory(struct error *error) {
    return error_set(error, "no memory for the list of recordings");
}

bool recordings_is_list(const char *word) {
    return word && *word == '@' && word[1];
}

static bool is_key(const char *text, size_t length) {
    bool is_right = length && !isdigit((unsigned char)*text);
    for (size_t i = 0; i < length; i++)
        is_right = is_right && (isalnum((unsigned char)text[i]) || text[i] == '_');
    return is_right;
}

static bool add_label(struct recordings *recordings, const char *text, struct error *error) {
    const char *equals = strchr(text, '=');
    if (!equals || !is_key(text, (size_t)(equals - text)))
        return error_set(
            error, "a label is KEY=VALUE, with a key of letters, digits and \"_\", not \"%s\"",
            text);
    struct recording_label *label = array_push(&recordings->labels);
    if (!label) return no_memory(error);
    *label = (struct recording_label){strndup(text, (size_t)(equals - text)), strdup(equals + 1)};
    return (label->key && label->value) || no_memory(error);
}

bool recordings_add_label(struct recordings *recordings, const char *text, struct error *error) {
    recordings->common_count++;
    return add_label(recordings, text, error);
}

static bool add_path(const struct finding *finding, const char *path, bool is_of_run,
                     struct error *error) {
    struct listed_recording *slot = array_push(&finding->recordings->list);
    if (!slot) return no_memory(error);
    *slot = (struct listed_recording){.path = strdup(path),
                                      .is_of_run = is_of_run,
                                      .is_of_list = finding->is_of_list,
                                      .first_label = finding->first_label,
                                      .label_count = finding->label_count};
    return slot->path || no_memory(error);
}

static bool join(char path[PATH_MAX], const char *directory, const char *name,
                 struct error *error) {
    int length = snprintf(path, PATH_MAX, "%s/%s", directory, name);
    return length < PATH_MAX || error_set(error, "%s: path too long", name);
}

static bool add_run(const struct finding *finding, const char *directory, struct error *error) {
    struct run run;
    char path[PATH_MAX];
    if (!run_open(directory, &run, error)) return false;
    bool is_ok = true;
    finding->recordings->bad_files += run.bad_files + run.lost_files;
    for (size_t i = 0; is_ok && i < run.rows.count; i++) {
        const struct run_row *row = &run.rows.items[i];
        if (*row->file)
            is_ok =
                join(path, run.directory, row->file, error) && add_path(finding, path, true, error);
    }
    run_close(&run);
    return is_ok;
}

static bool is_directory(const char *path) {
    struct stat status;
    return !stat(path, &status) && S_ISDIR(status.st_mode);
}

static int is_recording_name(const struct dirent *entry) {
    return run_row_is_file_name(entry->d_name);
}

static bool add_entry(const struct finding *finding, const char *path, struct error *error) {
    return is_directory(path) ? add_run(finding, path, error)
                              : add_path(finding, path, true, error);
}

// Each recording and each run in it, by name; `count` becomes their number.
static bool add_directory(const struct finding *finding, const char *directory, size_t *count,
                          struct error *error) {
    struct dirent **entries;
    char path[PATH_MAX];
    int found = scandir(directory, &entries, is_recording_name, alphasort);
    if (found < 0) return error_set(error, "%s: %s", directory, strerror(errno));
    bool is_ok = true;
    *count = (size_t)found;
    for (int i = 0; i < found; i++) {
        is_ok = is_ok && join(path, directory, entries[i]->d_name, error) &&
                add_entry(finding, path, error);
        free(entries[i]);
    }
    free(entries);
    return is_ok;
}

static bool add_subject(const struct finding *finding, const char *word, struct error *error) {
    const char *process = finding->recordings->process;
    struct subject subject;
    size_t count = 0;
    if (word && !process && is_directory(word) && !run_has_index(word)) {
        if (!add_directory(finding, word, &count, error)) return false;
        if (count) return true;
    }
    if (!subject_find(word, &subject, error) ||
        (process && !subject_enter(&subject, process, error)))
        return false;
    return subject.is_run ? add_run(finding, subject.path, error)
                          : add_path(finding, subject.path, false, error);
}

void recordings_leave_out(struct recordings *recordings, const struct error *why) {
    char safe[4 * sizeof why->text];
    text_escape(safe, sizeof safe, why->text);
    fprintf(stderr, "cairn: left out: %s\n", safe);
    recordings->left_out++;
    recordings->bad_files++;
}

// A subject that is not there is left out; a label that is none ends it all.
static bool add_line(struct recordings *recordings, char *line, const char *where,
                     struct error *error) {
    char *rest = NULL;
    const char *word = strtok_r(line, "\t", &rest);
    size_t first = recordings->labels.count;
    if (!word) return true;
    for (char *label; (label = strtok_r(NULL, "\t", &rest));)
        if (!add_label(recordings, label, error)) return false;
    const struct finding finding = {recordings, first, recordings->labels.count - first, true};
    struct error why;
    if (!add_subject(&finding, word, &why)) {
        error_wrap(&why, "%s", where);
        recordings_leave_out(recordings, &why);
    }
    return true;
}

static bool add_list(struct recordings *recordings, const char *path, struct error *error) {
    bool is_stdin = !strcmp(path, "-"), is_ok = true;
    size_t capacity = 0, number = 0;
    char *line = NULL, where[PATH_MAX];
    FILE *in = is_stdin ? stdin : fopen(path, "re");
    if (!in) return error_set(error, "%s: %s", path, strerror(errno));
    while (is_ok && getline(&line, &capacity, in) >= 0) {
        number++;
        line[strcspn(line, "\r\n")] = 0;
        snprintf(where, sizeof where, "%s:%zu", path, number);
        is_ok = add_line(recordings, line, where, error) || error_wrap(error, "%s", where);
    }
    if (is_ok && ferror(in)) is_ok = error_set(error, "%s: %s", path, strerror(errno));
    free(line);
    if (!is_stdin) fclose(in);
    return is_ok;
}

bool recordings_find_all(struct recordings *recordings, char *const *words, int count,
                         struct error *error) {
    const struct finding finding = {.recordings = recordings};
    bool is_ok = count || add_subject(&finding, NULL, error);
    for (int i = 0; is_ok && i < count; i++)
        is_ok = recordings_is_list(words[i]) ? add_list(recordings, words[i] + 1, error)
                                             : add_subject(&finding, words[i], error);
    return is_ok;
}

void recordings_free(struct recordings *recordings) {
    for (size_t i = 0; i < recordings->list.count; i++) free(recordings->list.items[i].path);
    for (size_t i = 0; i < recordings->labels.count; i++) {
        free(recordings->labels.items[i].key);
        free(recordings->labels.items[i].value);
    }
    array_free(&recordings->list);
    array_free(&recordings->labels);
    array_free(&recordings->keys);
    array_free(&recordings->values);
}

static size_t key_number(const struct recordings *recordings, const char *key) {
    size_t i = 0;
    while (i < recordings->keys.count && strcmp(recordings->keys.items[i], key) != 0) i++;
    return i;
}

bool recordings_labels(struct recordings *recordings, struct export_labels *labels) {
    for (size_t i = 0; i < recordings->labels.count; i++) {
        const char *key = recordings->labels.items[i].key;
        if (key_number(recordings, key) < recordings->keys.count) continue;
        const char **slot = array_push(&recordings->keys);
        const char **value = array_push(&recordings->values);
        if (!slot || !value) return false;
        *slot = key;
        *value = NULL;
    }
    *labels = (struct export_labels){.count = recordings->keys.count,
                                     .keys = recordings->keys.items,
                                     .values = recordings->values.items};
    return true;
}

void recordings_label(struct recordings *recordings, size_t index) {
    const struct listed_recording *listed = &recordings->list.items[index];
    for (size_t i = 0; i < recordings->values.count; i++) recordings->values.items[i] = NULL;
    size_t count = recordings->common_count + listed->label_count;
    for (size_t i = 0; i < count; i++) {
        bool is_common = i < recordings->common_count;
        size_t at = is_common ? i : listed->first_label + i - recordings->common_count;
        const struct recording_label *label = &recordings->labels.items[at];
        recordings->values.items[key_number(recordings, label->key)] = label->value;
    }
}
