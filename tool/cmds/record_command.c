// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/record_command.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/settings.h"
#include "tool/base/clock.h"
#include "tool/base/units.h"
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
    if (command->limit_ns) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
    if (command->directory && chdir(command->directory) != 0) _exit(STATUS_FAILURE);
    become(words);
}

static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFSIGNALED(status) ? STATUS_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

// Waits until a child ends, or for so long. False: it still runs.
static bool has_ended(pid_t child, uint64_t limit_ns) {
    enum { SECOND_MS = 1000 };
    const uint64_t ms_ns = 1000000;
    int file = (int)syscall(SYS_pidfd_open, child, 0);
    if (file < 0) return true;  // without pidfds there is no limit
    struct pollfd end = {file, POLLIN, 0};
    uint64_t end_ns = clock_now_ns() + limit_ns, now_ns;
    int ready = 0;
    while (ready <= 0 && (now_ns = clock_now_ns()) < end_ns) {
        uint64_t left_ms = (end_ns - now_ns) / ms_ns + 1;
        ready = poll(&end, 1, left_ms < SECOND_MS ? (int)left_ms : SECOND_MS);
    }
    close(file);
    return ready > 0;
}

// The group of a command that does not end: first asked, so that its recording is kept, then
// killed.
static void end_group(pid_t child) {
    const uint64_t patience_ns = 2 * CLOCK_SECOND_NS;
    kill(-child, SIGTERM);
    has_ended(child, patience_ns);
    kill(-child, SIGKILL);
}

void recorded_text(const struct recorded *recorded, char *out, size_t size) {
    if (recorded->over_limit_ns)
        snprintf(out, size, "it did not end within %s, and was killed",
                 units_duration(recorded->over_limit_ns).text);
    else
        snprintf(out, size, "it ended with status %d", recorded->status);
}

bool record_command(const struct record_command *command, struct recorded *recorded,
                    struct error *error) {
    *recorded = (struct recorded){0};
    if (!choose_path(command->output, recorded, error)) return false;
    pid_t child = fork();
    if (child < 0) return error_set(error, "cannot start a process: %s", strerror(errno));
    if (!child) exec_run(command, recorded->path);
    if (command->limit_ns && !has_ended(child, command->limit_ns)) {
        recorded->over_limit_ns = command->limit_ns;
        end_group(child);
    }
    recorded->status = wait_for(child);
    if (recorded->over_limit_ns && !recorded->status) recorded->status = STATUS_FAILURE;
    if (!access(recorded->path, F_OK)) return true;
    char text[sizeof error->text / 2];
    recorded_text(recorded, text, sizeof text);
    return error_set(error, "check: nothing was recorded of the command: %s", text);
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
