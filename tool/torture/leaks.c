// SPDX-License-Identifier: Apache-2.0
#include "tool/torture/leaks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/units.h"
#include "tool/model/narrow.h"
#include "tool/symbol/internal_frames.h"

enum { ID_BYTES = 16 };

// Another process of the tool, since reading a recording is not to end this one.
static json_t *ask(const char *tool, const char *recording) {
    int pipes[2];
    if (access(recording, R_OK) || pipe2(pipes, O_CLOEXEC)) return NULL;
    pid_t child = fork();
    if (!child) {
        dup2(pipes[1], STDOUT_FILENO);
        freopen("/dev/null", "w", stderr);
        execl(tool, "cairn", "leaks", "--unreachable", "--no-suppressions", "--json", recording,
              (char *)NULL);
        _exit(1);
    }
    close(pipes[1]);
    FILE *in = fdopen(pipes[0], "re");
    json_t *root = in ? json_loadf(in, 0, NULL) : NULL;
    if (in) fclose(in);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return root;
}

static void put_where(FILE *out, json_t *frames) {
    enum { SHOWN = 3 };
    size_t shown = 0;
    for (size_t i = 0; i < json_array_size(frames) && shown < SHOWN; i++) {
        json_t *frame = json_array_get(frames, i);
        const char *function = json_string_value(json_object_get(frame, "function"));
        const char *file = json_string_value(json_object_get(frame, "file"));
        json_int_t line = json_integer_value(json_object_get(frame, "line"));
        const char *module = json_string_value(json_object_get(frame, "module"));
        if (internal_is_hidden(function, module)) continue;
        fprintf(out, "%s%s", shown++ ? " <- " : "",
                function ? function
                : module ? text_base_name(module)
                         : "?");
        if (file && line) fprintf(out, " (%s:%d)", text_base_name(file), (int)line);
    }
}

static char *list_of(json_t *root) {
    char *text = NULL;
    size_t size;
    json_t *stacks = json_object_get(root, "stacks");
    json_t *known = json_object_get(json_object_get(root, "reachability"), "known_processes");
    if (!json_is_array(stacks) || !json_integer_value(known)) return NULL;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        json_t *stack = json_array_get(stacks, i);
        const char *id = json_string_value(json_object_get(stack, "id"));
        json_int_t bytes = json_integer_value(json_object_get(stack, "at_exit_bytes"));
        if (!id || strlen(id) != ID_BYTES || bytes <= 0) continue;
        fprintf(out, "%s %" JSON_INTEGER_FORMAT " ", id, bytes);
        put_where(out, json_object_get(stack, "frames"));
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

static char *ids_of(const struct profile *profile) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; out && i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        if (stack->exit_bytes > 0)
            fprintf(out, "%016" PRIx64 " %" PRId64 " \n", stack->id, stack->exit_bytes);
    }
    if (out) fclose(out);
    return text;
}

static void path_of(const struct torture_run *run, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/run.cairn", run->directory);
}

char *torture_leaks_of(const struct torture_run *run) {
    char path[PATH_MAX], *ids = NULL;
    struct recording recording;
    struct profile profile;
    path_of(run, path);
    if (access(path, R_OK) || !recording_open(path, &recording, NULL)) return NULL;
    if (profile_build(&recording, &profile, NULL)) {
        if (profile.reachability.known_count) {
            profile_keep_lost(&profile);
            ids = ids_of(&profile);
        }
        profile_free(&profile);
    }
    recording_close(&recording);
    return ids;
}

void torture_leaks_tell(struct torture_run *run, const struct torture_settings *settings,
                        const struct torture_outcome *usual) {
    char path[PATH_MAX];
    uint64_t bytes;
    path_of(run, path);
    json_t *root = ask(settings->tool, path);
    char *leaks = root ? list_of(root) : NULL;
    const char *first = torture_leaks_new(leaks, usual->leaks, &bytes);
    if (first) {
        const char *where = first + ID_BYTES + 1;
        where += strspn(where, "0123456789") + 1;
        snprintf(run->outcome.detail, sizeof run->outcome.detail,
                 "%s that nothing leads to, from %.*s", units_size((int64_t)bytes).text,
                 (int)strcspn(where, "\n"), where);
    }
    free(leaks);
    json_decref(root);
}

static bool has_id(const char *leaks, const char *id) {
    for (const char *at = leaks; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, id, ID_BYTES)) return true;
    return false;
}

const char *torture_leaks_new(const char *leaks, const char *usual, uint64_t *bytes) {
    const char *first = NULL;
    *bytes = 0;
    for (const char *at = leaks; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        if (has_id(usual, at)) continue;
        if (!first) first = at;
        *bytes += strtoull(at + ID_BYTES, NULL, 10);
    }
    return first;
}
