// SPDX-License-Identifier: Apache-2.0
// One run of the program: started in a group of its own, its output read and bounded, ended when
// its time is over. What it leaves behind, daemons too, is found by the variable in its environment
// and ended with it. So a program that never ends, floods its output or fills a file costs what the
// settings say and no more.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/torture.h"
#include "tool/base/clock.h"
#include "tool/base/fnv.h"
#include "tool/torture/leaks.h"
#include "tool/torture/torture.h"

enum { READ_BYTES = 1 << 16, ENVIRONMENT_BYTES = 1 << 16, DIRECTORY_MODE = 0700, FILE_MODE = 0600 };
enum { SIGNAL_BASE = 128, OPEN_FILES = 16 };

void torture_run_map(const struct torture_run *run, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/stacks", run->directory);
}

void torture_outcome_free(struct torture_outcome *outcome) {
    free(outcome->leaks);
    outcome->leaks = NULL;
}

// ---- before -------------------------------------------------------------------------------------

// Most of it is never written, and takes no room.
static bool make_map(const struct torture_run *run, const struct torture_settings *settings,
                     uint64_t target, uint64_t nth, struct error *error) {
    char path[PATH_MAX];
    torture_run_map(run, path);
    struct torture_head head = {.magic = TORTURE_MAGIC,
                                .target = target,
                                .nth = nth,
                                .file_bytes_max = settings->bytes_max};
    snprintf(head.tool, sizeof head.tool, "%s", settings->tool);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    bool is_ok = file >= 0 && !ftruncate(file, (off_t)sizeof(struct torture_map)) &&
                 pwrite(file, &head, sizeof head, 0) == (ssize_t)sizeof head;
    if (!is_ok) error_set(error, "%s: %s", path, strerror(errno));
    if (file >= 0) close(file);
    return is_ok;
}

static bool make_directory(struct torture_run *run, const struct torture_settings *settings,
                           unsigned number, struct error *error) {
    char temporary[PATH_MAX];
    snprintf(run->directory, sizeof run->directory, "%s/run.%u", settings->directory, number);
    snprintf(temporary, sizeof temporary, "%s/tmp", run->directory);
    torture_run_remove(run);
    return (!mkdir(run->directory, DIRECTORY_MODE) && !mkdir(temporary, DIRECTORY_MODE)) ||
           error_set(error, "%s: %s", run->directory, strerror(errno));
}

static void set_first(const char *name, const char *value, char separator) {
    const char *there = getenv(name);
    char *both = NULL;
    if (there && *there && asprintf(&both, "%s%c%s", value, separator, there) < 0)
        _exit(SIGNAL_BASE - 1);
    setenv(name, both ? both : value, 1);
}

// In the child. AddressSanitizer's library would otherwise refuse to be second.
static void set_environment(const struct torture_run *run,
                            const struct torture_settings *settings) {
    char map[PATH_MAX], temporary[PATH_MAX];
    torture_run_map(run, map);
    snprintf(temporary, sizeof temporary, "%s/tmp", run->directory);
    setenv(TORTURE_VARIABLE, map, 1);
    setenv("TMPDIR", temporary, 1);
    set_first("LD_PRELOAD", settings->library, ':');
    set_first("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
}

static void become_program(const struct torture_run *run, const struct torture_settings *settings) {
    char recording[PATH_MAX];
    size_t count = 0;
    while (settings->command[count]) count++;
    if (!count) _exit(SIGNAL_BASE - 1);
    char *own[] = {"cairn", "run", "-q", "--unreachable", "-o", recording, "--"};
    const size_t own_count = sizeof own / sizeof *own;
    char **words = calloc(count + own_count + 1, sizeof *words);
    if (!words) _exit(SIGNAL_BASE - 1);
    snprintf(recording, sizeof recording, "%s/run.cairn", run->directory);
    if (settings->has_leaks) {
        memcpy(words, own, sizeof own);
        memcpy(words + own_count, settings->command, count * sizeof *words);
        execv(settings->tool, words);
    } else {
        execvp(*settings->command, settings->command);
    }
    dprintf(STDERR_FILENO, "%s: %s\n", *settings->command, strerror(errno));
    _exit(SIGNAL_BASE - 1);
}

static void run_child(const struct torture_run *run, const struct torture_settings *settings,
                      int output, int errors) {
    const struct rlimit none = {0, 0};
    int input = open(settings->input ? settings->input : "/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    if (input >= 0) dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (int file = STDERR_FILENO + 1; file < OPEN_FILES; file++) close(file);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    set_environment(run, settings);
    become_program(run, settings);
}

bool torture_run_start(struct torture_run *run, const struct torture_settings *settings,
                       uint64_t target, uint64_t nth, unsigned number, struct error *error) {
    int output[2] = {-1, -1}, errors[2] = {-1, -1};
    size_t step = run->step;
    *run = (struct torture_run){.step = step, .output = -1, .errors = -1};
    run->outcome.output_hash = FNV_START;
    if (!make_directory(run, settings, number, error) ||
        !make_map(run, settings, target, nth, error))
        return false;
    if (pipe2(output, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
        return error_set(error, "torture: no pipe: %s", strerror(errno));
    run->start_ns = clock_now_ns();
    run->pid = fork();
    if (!run->pid) run_child(run, settings, output[1], errors[1]);
    close(output[1]);
    close(errors[1]);
    run->output = output[0];
    run->errors = errors[0];
    fcntl(run->output, F_SETFL, O_NONBLOCK);
    fcntl(run->errors, F_SETFL, O_NONBLOCK);
    return run->pid > 0 || error_set(error, "torture: no process: %s", strerror(errno));
}

// ---- during -------------------------------------------------------------------------------------

static void keep_tail(struct torture_outcome *outcome, const char *bytes, size_t count) {
    size_t used = strlen(outcome->tail), room = sizeof outcome->tail - 1;
    for (size_t i = 0; i < count; i++) {
        if (!bytes[i]) continue;
        if (used == room) {  // what came last is kept
            memmove(outcome->tail, outcome->tail + room / 2, room - room / 2);
            used = room - room / 2;
        }
        outcome->tail[used++] = bytes[i];
    }
    outcome->tail[used] = 0;
}

static const char *const sanitizer_words[] = {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                                              "WARNING: ThreadSanitizer",
                                              "WARNING: MemorySanitizer", ": runtime error: "};

static void note_line_of(struct torture_outcome *outcome, const char *text, const char *word) {
    const char *at = strstr(text, word);
    if (!at) return;
    while (at > text && at[-1] != '\n') at--;
    snprintf(outcome->detail, sizeof outcome->detail, "%.*s", (int)strcspn(at, "\n"), at);
}

// Reports are long: what they are is at their beginning.
static void look_for_report(struct torture_outcome *outcome, const char *text) {
    for (size_t i = 0; i < sizeof sanitizer_words / sizeof *sanitizer_words; i++)
        if (!*outcome->detail) note_line_of(outcome, text, sanitizer_words[i]);
    if (*outcome->detail) outcome->kind = TORTURE_SANITIZER;
}

// False at the end of the pipe.
static bool read_pipe(struct torture_run *run, int file, const struct torture_settings *settings) {
    char bytes[READ_BYTES + 1];
    struct torture_outcome *outcome = &run->outcome;
    for (;;) {
        ssize_t count = read(file, bytes, READ_BYTES);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count < 0 && errno == EAGAIN;
        bytes[count] = 0;
        outcome->output_bytes += (uint64_t)count;
        if (file == run->errors) {
            keep_tail(outcome, bytes, (size_t)count);
            look_for_report(outcome, bytes);
        } else {
            outcome->output_hash = fnv_add(outcome->output_hash, bytes, (size_t)count);
        }
        outcome->is_flood = outcome->output_bytes > settings->bytes_max;
        if (outcome->is_flood) return true;
    }
}

static void read_output(struct torture_run *run, const struct torture_settings *settings) {
    int *const files[] = {&run->output, &run->errors};
    for (int i = 0; i < 2; i++) {
        if (*files[i] < 0 || read_pipe(run, *files[i], settings)) continue;
        close(*files[i]);
        *files[i] = -1;
    }
}

static bool has_variable(const char *pid, const char *variable) {
    char path[PATH_MAX], *bytes = malloc(ENVIRONMENT_BYTES);
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 && bytes ? read(file, bytes, ENVIRONMENT_BYTES) : -1;
    bool is_there =
        count > 0 && memmem(bytes, (size_t)count, variable, strlen(variable) + 1) != NULL;
    if (file >= 0) close(file);
    free(bytes);
    return is_there;
}

// Every process that this run started, whatever group or session it is in by now.
static bool kill_all(const struct torture_run *run) {
    char variable[PATH_MAX + sizeof TORTURE_VARIABLE + 1], map[PATH_MAX];
    bool is_any = false;
    torture_run_map(run, map);
    snprintf(variable, sizeof variable, "%s=%s", TORTURE_VARIABLE, map);
    if (run->pid > 0) kill(-run->pid, SIGKILL);
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || pid == getpid() || !has_variable(entry->d_name, variable)) continue;
        kill(pid, SIGKILL);
        is_any = true;
    }
    if (processes) closedir(processes);
    return is_any;
}

static void read_map(struct torture_run *run) {
    char path[PATH_MAX];
    struct torture_head head;
    torture_run_map(run, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (read(file, &head, sizeof head) == (ssize_t)sizeof head) {
        run->outcome.is_reached = head.failed_pid != 0;
        run->outcome.has_given_up = head.has_given_up != 0;
    }
    close(file);
}

static void finish(struct torture_run *run, const struct torture_settings *settings,
                   int wait_status) {
    struct torture_outcome *outcome = &run->outcome;
    enum { ROUNDS = 50 };
    for (int i = 0; i < ROUNDS && kill_all(run); i++) usleep(1000);
    read_output(run, settings);
    if (run->output >= 0) close(run->output);
    if (run->errors >= 0) close(run->errors);
    run->output = run->errors = -1;
    outcome->duration_ns = clock_now_ns() - run->start_ns;
    outcome->status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    bool is_ended_by_us = outcome->is_over_time || outcome->is_flood;
    outcome->signal = is_ended_by_us                  ? 0
                      : WIFSIGNALED(wait_status)      ? WTERMSIG(wait_status)
                      : outcome->status > SIGNAL_BASE ? outcome->status - SIGNAL_BASE
                                                      : 0;
    read_map(run);
    if (settings->has_leaks && !outcome->is_over_time && !outcome->is_flood)
        outcome->leaks = torture_leaks_of(run);
    run->pid = 0;
}

bool torture_run_poll(struct torture_run *run, const struct torture_settings *settings) {
    struct torture_outcome *outcome = &run->outcome;
    int wait_status = 0;
    read_output(run, settings);
    pid_t ended = waitpid(run->pid, &wait_status, WNOHANG);
    if (ended == run->pid || (ended < 0 && errno == ECHILD)) {
        finish(run, settings, wait_status);
        return true;
    }
    bool is_late = clock_now_ns() - run->start_ns > settings->limit_ns;
    if (is_late && !outcome->is_over_time && !outcome->is_flood) outcome->is_over_time = true;
    if (outcome->is_over_time || outcome->is_flood) kill_all(run);
    return false;
}

void torture_run_kill(struct torture_run *run) {
    kill_all(run);
    if (run->pid > 0) waitpid(run->pid, NULL, 0);
    if (run->output >= 0) close(run->output);
    if (run->errors >= 0) close(run->errors);
    run->output = run->errors = -1;
    run->pid = 0;
}

// ---- after --------------------------------------------------------------------------------------

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    remove(path);
    return 0;
}

void torture_run_remove(struct torture_run *run) {
    nftw(run->directory, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
}
