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

static bool has_id(const char *leaks, const char *id) {
    for (const char *at = leaks; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, id, ID_BYTES)) return true;
    return false;
}

// The frames of a stack; their texts are the object's. For free().
static struct torture_frame *frames_of(json_t *stack, size_t *count) {
    json_t *list = json_object_get(stack, "frames");
    *count = json_array_size(list);
    struct torture_frame *frames = calloc(*count + 1, sizeof *frames);
    for (size_t i = 0; frames && i < *count; i++) {
        json_t *frame = json_array_get(list, i);
        frames[i] = (struct torture_frame){
            .function = json_string_value(json_object_get(frame, "function")),
            .file = json_string_value(json_object_get(frame, "file")),
            .line = (uint32_t)json_integer_value(json_object_get(frame, "line")),
            .module = json_string_value(json_object_get(frame, "module")),
            .address = (uint64_t)json_integer_value(json_object_get(frame, "offset"))};
    }
    return frames;
}

static json_t *stacks_of(json_t *root) {
    json_t *known = json_object_get(json_object_get(root, "reachability"), "known_processes");
    return json_integer_value(known) ? json_object_get(root, "stacks") : NULL;
}

// The first stack that the usual run has not; NULL: there is none. `bytes` becomes the sum.
static json_t *new_stack(json_t *stacks, const char *usual, int64_t *bytes) {
    json_t *first = NULL;
    *bytes = 0;
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        json_t *stack = json_array_get(stacks, i);
        const char *id = json_string_value(json_object_get(stack, "id"));
        json_int_t left = json_integer_value(json_object_get(stack, "at_exit_bytes"));
        if (!id || strlen(id) != ID_BYTES || left <= 0 || has_id(usual, id)) continue;
        if (!first) first = stack;
        *bytes += left;
    }
    return first;
}

static void tell(struct torture_outcome *outcome, json_t *stack, int64_t bytes,
                 const struct torture_target *target) {
    char *where = NULL;
    size_t size, count;
    struct torture_frame *frames = frames_of(stack, &count);
    FILE *out = frames ? open_memstream(&where, &size) : NULL;
    if (out) {
        torture_put_where(out, frames, count);
        fclose(out);
        snprintf(outcome->detail, sizeof outcome->detail, "%s that nothing leads to, from %s",
                 units_size(bytes).text, where ? where : "?");
        torture_within(target, frames, count, outcome->within, sizeof outcome->within);
    }
    free(where);
    free(frames);
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

bool torture_leaks_are_new(const char *leaks, const char *usual) {
    for (const char *at = leaks; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!has_id(usual, at)) return true;
    return false;
}

void torture_leaks_tell(struct torture_run *run, const struct torture_settings *settings,
                        const struct torture_outcome *usual, const struct torture_target *target) {
    char path[PATH_MAX];
    int64_t bytes;
    path_of(run, path);
    json_t *root = ask(settings->tool, path);
    json_t *stack = new_stack(stacks_of(root), usual->leaks, &bytes);
    if (stack) tell(&run->outcome, stack, bytes, target);
    json_decref(root);
}
