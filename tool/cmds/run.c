// SPDX-License-Identifier: Apache-2.0
// cairn run: starts a program beside a watch, waits, reports. The program keeps its streams,
// signals, terminal and exit status.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/report_summary.h"
#include "tool/watch/launch.h"
#include "tool/watch/program.h"
#include "tool/watch/store.h"
#include "tool/watch/watch.h"

enum { STATUS_RUN_FAILED = 125, STATUS_SIGNAL_BASE = 128 };

// First pause between looks at the program's memory, doubled up to the last.
enum { LOOK_FIRST_MS = 2, LOOK_LAST_MS = 100 };

struct run {
    const struct command_args *args;
    struct program program;
    struct launch launch;
    struct store store;
    struct watch watch;
    sigset_t old_mask;
    int signal_file;
    FILE *summary;  // where the report goes; NULL: nowhere
    pid_t child;
    int wait_status;
    uint64_t rusage_peak_bytes;
    bool is_over;
};

// Signals that whoever sends them to cairn means for the program.
static const int forwarded_signals[] = {SIGTERM, SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,
                                        SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};

static bool run_block_signals(struct run *run, struct error *error) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded_signals / sizeof *forwarded_signals; i++)
        sigaddset(&set, forwarded_signals[i]);
    sigprocmask(SIG_BLOCK, &set, &run->old_mask);
    run->signal_file = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signal_file >= 0 || error_set(error, "signalfd: %s", strerror(errno));
}

// Reaps whatever ended; as PID 1 that can be anybody's child.
static void run_reap(struct run *run) {
    struct rusage usage;
    int status = 0;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (pid != run->child) continue;
        run->is_over = true;
        run->wait_status = status;
        run->rusage_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    }
}

static void run_handle_signals(struct run *run) {
    struct signalfd_siginfo info;
    while (read(run->signal_file, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        // The terminal sends to the whole foreground group: the program has it already.
        bool is_from_terminal = info.ssi_code == SI_KERNEL;
        if (number == SIGCHLD)
            run_reap(run);
        else if (!is_from_terminal && !run->is_over)
            kill(run->child, number);
    }
}

// What the kernel counts as this process' own peak is the floor of what it reports for a child that
// was forked from it.
static uint64_t own_peak_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static void run_wait(struct run *run) {
    int pause_ms = LOOK_FIRST_MS;
    uint64_t floor_bytes = own_peak_bytes();
    while (!run->is_over) {
        watch_turn(&run->watch, run->signal_file, pause_ms);
        run_handle_signals(run);
        if (pause_ms < LOOK_LAST_MS) pause_ms *= 2;
    }
    if (run->rusage_peak_bytes <= floor_bytes) run->rusage_peak_bytes = 0;
}

static bool run_open_summary(struct run *run, struct error *error) {
    const char *path = args_text(run->args, OPTION_SUMMARY, NULL);
    if (path) {
        run->summary = fopen(path, "ae");
        return run->summary || error_set(error, "%s: %s", path, strerror(errno));
    }
    int copy = args_has(run->args, OPTION_QUIET) ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    run->summary = copy >= 0 ? fdopen(copy, "w") : NULL;
    return true;
}

static bool run_is_recordable(struct run *run, struct error *error) {
    if (!run->program.obstacle || args_has(run->args, OPTION_ANYWAY)) return true;
    return error_set(error, "%s cannot be recorded: %s (--anyway runs it unrecorded)",
                     run->program.path, run->program.obstacle);
}

static void run_announce(struct run *run) {
    if (!run->summary || !isatty(fileno(run->summary))) return;
    char name[NAME_MAX], path[NAME_MAX];
    text_escape(name, sizeof name, program_base_name(run->program.path));
    text_escape(path, sizeof path, program_base_name(run->store.path));
    fprintf(run->summary, "cairn: recording %s (pid %d) to %s\n", name, (int)run->child, path);
    fflush(run->summary);
}

// Why nothing may have been recorded although the program ran.
static const char *run_empty_reason(const struct run *run) {
    static char text[256];
    if (run->program.obstacle) return run->program.obstacle;
    if (!run->program.own_allocator) return NULL;
    snprintf(text, sizeof text, "the program is linked with %s, whose calls cannot be seen",
             run->program.own_allocator);
    return text;
}

static void run_report(struct run *run) {
    struct error error;
    struct summary_options options = {.top = SUMMARY_TOP_DEFAULT,
                                      .has_all_frames = args_has(run->args, OPTION_ALL_FRAMES),
                                      .empty_reason = run_empty_reason(run)};
    uint64_t top = SUMMARY_TOP_DEFAULT;
    if (!run->summary) return;
    args_number(run->args, OPTION_TOP, top, SIZE_MAX, &top, NULL);
    options.top = (size_t)top;
    if (run->watch.problem.text[0]) fprintf(run->summary, "cairn: %s\n", run->watch.problem.text);
    if (!run->watch.saved_count)
        fprintf(run->summary, "cairn: nothing was recorded%s%s\n", options.empty_reason ? ": " : "",
                options.empty_reason ? options.empty_reason : "");
    else if (!report_summary_print(run->summary, run->store.path, &options, &error))
        fprintf(run->summary, "cairn: %s\n", error.text);
}

static int run_status(const struct run *run) {
    if (WIFSIGNALED(run->wait_status)) return STATUS_SIGNAL_BASE + WTERMSIG(run->wait_status);
    return WEXITSTATUS(run->wait_status);
}

// cairn run --exec: becomes the program, which then writes its own file.
static int run_exec(struct run *run, struct error *error) {
    run->launch.output = run->store.path;
    if (!launch_set_environment(&run->launch, error)) return STATUS_RUN_FAILED;
    execv(run->program.path, run->args->words);
    error_set(error, "%s: %s", run->program.path, strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

static bool run_prepare(struct run *run, int *status, struct error *error) {
    const char *word = run->args->words[0];
    uint64_t unused = 0;
    if (!program_find(word, &run->program, status, error)) return false;
    *status = STATUS_USAGE;
    if (!args_number(run->args, OPTION_TOP, 0, SIZE_MAX, &unused, error)) return false;
    *status = STATUS_RUN_FAILED;
    return run_is_recordable(run, error) &&
           launch_find_library(&run->launch, run->program.brings_operator_new, error);
}

static bool run_start(struct run *run, int *status, struct error *error) {
    const char *output = args_text(run->args, OPTION_OUTPUT, NULL);
    const char *name = program_base_name(run->args->words[0]);
    *status = STATUS_RUN_FAILED;
    if (!run_open_summary(run, error) || !run_block_signals(run, error) ||
        !store_choose(&run->store, output, name, (int)getpid(), error) ||
        !watch_open(&run->watch, &run->store, error))
        return false;
    run->launch.socket_name = run->watch.socket_name;
    run->watch.name = name;
    if (!launch_start(&run->launch, run->program.path, run->args->words, &run->old_mask,
                      &run->child, status, error))
        return false;
    run->watch.main_pid = run->child;
    return output || store_choose(&run->store, output, name, (int)run->child, error);
}

int cmd_run(const struct command_args *args) {
    struct run run = {.args = args, .signal_file = -1};
    struct error error;
    int status = STATUS_USAGE;
    if (args->word_count == 0) {
        error_set(&error, "run: no program given (cairn run PROGRAM [ARGUMENT...])");
        return command_fail(STATUS_USAGE, &error);
    }
    if (!run_prepare(&run, &status, &error)) return command_fail(status, &error);
    if (args_has(args, OPTION_EXEC)) {
        const char *output = args_text(args, OPTION_OUTPUT, NULL);
        const char *name = program_base_name(args->words[0]);
        if (!store_choose(&run.store, output, name, (int)getpid(), &error))
            return command_fail(STATUS_RUN_FAILED, &error);
        status = run_exec(&run, &error);
        return command_fail(status, &error);
    }
    if (!run_start(&run, &status, &error)) return command_fail(status, &error);
    run_announce(&run);
    run_wait(&run);
    watch_finish(&run.watch, run.wait_status, run.rusage_peak_bytes);
    run_report(&run);
    watch_close(&run.watch);
    if (run.summary) fclose(run.summary);
    return run_status(&run);
}
