// SPDX-License-Identifier: Apache-2.0
// The results, and the log that --state keeps of them: a JSON object a line, the first with the
// command. A line is written when its run is over, so that what was interrupted goes on from there.
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/torture/torture.h"

enum { DIRECTORY_MODE = 0700 };

const struct torture_result *torture_results_find(const struct torture_results *results,
                                                  uint64_t hash, uint64_t nth) {
    for (size_t i = 0; i < results->list.count; i++)
        if (results->list.items[i].hash == hash && results->list.items[i].nth == nth)
            return &results->list.items[i];
    return NULL;
}

static bool add(struct torture_results *results, uint64_t hash, uint64_t nth,
                struct torture_outcome *outcome) {
    struct torture_result *slot = array_push(&results->list);
    if (!slot) return false;
    *slot = (struct torture_result){.hash = hash, .nth = nth, .outcome = *outcome};
    slot->outcome.leaks = NULL;  // what is new of them is in the detail
    torture_outcome_free(outcome);
    return true;
}

// Text of a program may be any bytes; in the log only what JSON can hold.
static json_t *text_of(const char *text, size_t size) {
    char *safe = calloc(1, size), *line = strdup(text);
    for (char *at = line, *end; safe && at && *at; at = end) {
        size_t used = strlen(safe);
        end = at + strcspn(at, "\n");
        bool is_ended = *end == '\n';
        if (is_ended) *end++ = 0;
        if (used + 1 < size) text_escape(safe + used, size - used - 1, at);
        if (is_ended) snprintf(safe + strlen(safe), size - strlen(safe), "\n");
    }
    json_t *value = safe && line ? json_string(safe) : NULL;
    free(safe);
    free(line);
    return value;
}

bool torture_results_add(struct torture_results *results, uint64_t hash, uint64_t nth,
                         struct torture_outcome *outcome) {
    if (results->log) {
        char id[20];
        snprintf(id, sizeof id, "%016" PRIx64, hash);
        json_t *line = json_pack(
            "{s:s, s:I, s:s, s:i, s:i, s:I, s:o?, s:o?, s:o?, s:o?}", "stack", id, "nth",
            (json_int_t)nth, "kind", torture_kind_names[outcome->kind], "status", outcome->status,
            "signal", outcome->signal, "duration_ns", (json_int_t)outcome->duration_ns, "detail",
            text_of(outcome->detail, 2 * sizeof outcome->detail), "tail",
            text_of(outcome->tail, 2 * sizeof outcome->tail), "died_at",
            text_of(outcome->died_at, 2 * sizeof outcome->died_at), "within",
            text_of(outcome->within, sizeof outcome->within));
        if (line) json_dumpf(line, results->log, JSON_COMPACT);
        json_decref(line);
        fputc('\n', results->log);
        fflush(results->log);
    }
    return add(results, hash, nth, outcome);
}

static void copy_text(char *out, size_t size, json_t *line, const char *key) {
    const char *text = json_string_value(json_object_get(line, key));
    snprintf(out, size, "%s", text ? text : "");
}

static bool read_result(struct torture_results *results, json_t *line) {
    struct torture_outcome outcome = {.kind = TORTURE_KINDS, .is_reached = true};
    const char *id = json_string_value(json_object_get(line, "stack"));
    const char *kind = json_string_value(json_object_get(line, "kind"));
    for (int i = 0; kind && i < TORTURE_KINDS; i++)
        if (!strcmp(kind, torture_kind_names[i])) outcome.kind = (enum torture_kind)i;
    if (!id || outcome.kind == TORTURE_KINDS) return true;  // of another version: runs again
    outcome.status = (int)json_integer_value(json_object_get(line, "status"));
    outcome.signal = (int)json_integer_value(json_object_get(line, "signal"));
    outcome.duration_ns = (uint64_t)json_integer_value(json_object_get(line, "duration_ns"));
    copy_text(outcome.detail, sizeof outcome.detail, line, "detail");
    copy_text(outcome.tail, sizeof outcome.tail, line, "tail");
    copy_text(outcome.died_at, sizeof outcome.died_at, line, "died_at");
    copy_text(outcome.within, sizeof outcome.within, line, "within");
    return add(results, strtoull(id, NULL, 16),
               (uint64_t)json_integer_value(json_object_get(line, "nth")), &outcome);
}

static json_t *words_of(char *const *command) {
    json_t *words = json_array();
    for (; words && *command; command++) json_array_append_new(words, text_of(*command, PATH_MAX));
    return words;
}

// A last line that was not finished is not there.
static bool read_log(struct torture_results *results, const char *path, json_t *words,
                     struct error *error) {
    char *line = NULL;
    size_t room = 0;
    bool is_ok = true, is_first = true;
    FILE *in = fopen(path, "re");
    while (is_ok && in && getline(&line, &room, in) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        if (is_first && !json_equal(json_object_get(object, "command"), words))
            is_ok = error_set(error, "%s: it is of another command", path);
        else if (!is_first && object && !read_result(results, object))
            is_ok = error_set(error, "torture: no memory");
        is_first = false;
        json_decref(object);
    }
    free(line);
    if (in) fclose(in);
    return is_ok;
}

bool torture_state_open(struct torture_results *results, const char *directory,
                        char *const *command, struct error *error) {
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/results", directory);
    if (mkdir(directory, DIRECTORY_MODE) && errno != EEXIST)
        return error_set(error, "%s: %s", directory, strerror(errno));
    json_t *words = words_of(command);
    bool is_new = stat(path, &status) || !status.st_size;
    bool is_ok = is_new || read_log(results, path, words, error);
    if (is_ok) results->log = fopen(path, "ae");
    if (is_ok && !results->log) is_ok = error_set(error, "%s: %s", path, strerror(errno));
    if (is_ok && is_new) {
        json_t *head = json_pack("{s:s, s:O}", "schema", "cairn.torture.log/1", "command", words);
        if (head) json_dumpf(head, results->log, JSON_COMPACT);
        json_decref(head);
        fputc('\n', results->log);
        fflush(results->log);
    }
    json_decref(words);
    return is_ok;
}

void torture_results_free(struct torture_results *results) {
    for (size_t i = 0; i < results->list.count; i++)
        torture_outcome_free(&results->list.items[i].outcome);
    array_free(&results->list);
    if (results->log) fclose(results->log);
}
