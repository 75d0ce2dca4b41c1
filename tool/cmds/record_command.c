// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/record_command.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/settings.h"
#include "tool/proc/process.h"
#include "tool/query/arguments.h"

enum { STATUS_SIGNAL_BASE = 128, STATUS_NOT_FOUND = 127 };

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void record_command_remove(struct recorded *recorded) {
    enum { DESCRIPTORS = 16 };
    if (*recorded->directory)
        nftw(recorded->directory, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    *recorded->directory = 0;
}

// Where the recording goes: where the user said, or a directory of its own.
static bool choose_path(const char *output, struct recorded *recorded, struct error *error) {
    const char *top = getenv("TMPDIR");
    if (output) {
        if (!access(output, F_OK)) return error_set(error, "%s: exists", output);
        snprintf(recorded->path, sizeof recorded->path, "%s", output);
        return true;
    }
    snprintf(recorded->directory, sizeof recorded->directory, "%s/cairn-check.XXXXXX",
             top && *top ? top : "/tmp");
    if (!mkdtemp(recorded->directory)) {
        error_set(error, "%s: %s", recorded->directory, strerror(errno));
        *recorded->directory = 0;
        return false;
    }
    int length =
        snprintf(recorded->path, sizeof recorded->path, "%s/run.cairn", recorded->directory);
    return length < (int)sizeof recorded->path || error_set(error, "the path is too long");
}

static void become(char **words) {
    char own_path[PATH_MAX];
    execv("/proc/self/exe", words);
    if (process_own_executable(own_path)) execv(own_path, words);
    _exit(STATUS_FAILURE);
}

// Becomes `cairn run -q -o PATH [--unreachable] [--python] -- COMMAND`.
static void exec_run(const struct record_command *command, const char *path) {
    enum { OWN_WORDS = 8 };
    char **words = calloc((size_t)command->count + OWN_WORDS + 1, sizeof *words);
    if (!words) _exit(STATUS_FAILURE);
    if (command->has_guard) setenv(CAIRN_VARIABLE(GUARD), "16", 0);
    char *own[OWN_WORDS] = {"cairn", "run", "-q", "-o", (char *)(uintptr_t)path};
    size_t own_count = OWN_WORDS - 3;
    if (command->has_unreachable) own[own_count++] = "--unreachable";
    if (command->has_python) own[own_count++] = "--python";
    own[own_count++] = "--";
    memcpy(words, own, own_count * sizeof *words);
    memcpy(words + own_count, command->words, (size_t)command->count * sizeof *words);
    if (command->is_silent) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    }
    if (command->directory && chdir(command->directory) != 0) _exit(STATUS_FAILURE);
    become(words);
}

static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFSIGNALED(status) ? STATUS_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

bool record_command(const struct record_command *command, struct recorded *recorded,
                    struct error *error) {
    *recorded = (struct recorded){0};
    if (!choose_path(command->output, recorded, error)) return false;
    pid_t child = fork();
    if (child < 0) return error_set(error, "cannot start a process: %s", strerror(errno));
    if (!child) exec_run(command, recorded->path);
    recorded->status = wait_for(child);
    if (!access(recorded->path, F_OK)) return true;
    return error_set(error, "check: nothing was recorded; the command ended with status %d",
                     recorded->status);
}

int run_and_wait(char *const words[]) {
    pid_t child = fork();
    if (child < 0) return STATUS_NOT_FOUND;
    if (!child) {
        execvp(words[0], words);
        _exit(STATUS_NOT_FOUND);
    }
    return wait_for(child);
}
