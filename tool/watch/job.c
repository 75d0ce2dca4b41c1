// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "format/settings.h"
#include "tool/proc/process.h"

enum { STATUS_REFUSED = 125, STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127 };

size_t launch_variables(const struct launch *launch,
                        struct launch_variable variables[LAUNCH_VARIABLES]) {
    const struct launch_variable all[] = {
        {CAIRN_VARIABLE(SOCKET), launch->socket_name},
        {CAIRN_VARIABLE(OUTPUT), launch->output},
        {CAIRN_VARIABLE(WRAP), launch->wrap_rows},
        {"PYTHONMALLOC", launch->is_for_python ? "malloc" : NULL},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value) variables[count++] = all[i];
    for (size_t i = 0; i < launch->recording_count; i++) variables[count++] = launch->recording[i];
    return count;
}

char *launch_text(const struct launch *launch) {
    struct launch_variable variables[LAUNCH_VARIABLES];
    size_t count = launch_variables(launch, variables), bytes = 0;
    char *text = NULL;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream) return NULL;
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%s=%s%c", variables[i].name, variables[i].value, 0);
    if (fclose(stream) == 0) return text;  // a NUL follows what was written
    free(text);
    return NULL;
}

// Seccomp filters that this process lives under, and all that it starts: they are taken for
// harmless (runtime/sys/seccomp.h). Kernels before 5.9 do not count them.
static bool set_filters(void) {
    enum { STATUS_BYTES = 8192, DIGITS_BYTES = 24 };
    const char *many = "1000";
    char status[STATUS_BYTES], digits[DIGITS_BYTES];
    if (!process_read(getpid(), "status", status, sizeof status) ||
        strtol(process_field(status, "Seccomp"), NULL, 10) == 0)
        return unsetenv(CAIRN_VARIABLE(FILTERS)) == 0;
    long count = strtol(process_field(status, "Seccomp_filters"), NULL, 10);
    snprintf(digits, sizeof digits, "%ld", count);
    return setenv(CAIRN_VARIABLE(FILTERS), count ? digits : many, 1) == 0;
}

bool launch_set_environment(const struct launch *launch, struct error *error) {
    const char *older = getenv("LD_PRELOAD");
    char *list = NULL;
    if (asprintf(&list, "%s%s%s", launch->library, older && older[0] ? ":" : "",
                 older ? older : "") < 0)
        return error_set(error, "out of memory");
    bool is_set = (!launch->library[0] || setenv("LD_PRELOAD", list, 1) == 0) && set_filters();
    free(list);
    struct launch_variable variables[LAUNCH_VARIABLES];
    size_t count = launch_variables(launch, variables);
    unsetenv(CAIRN_VARIABLE(SOCKET));
    for (size_t i = 0; i < count; i++)
        is_set = is_set && setenv(variables[i].name, variables[i].value, 1) == 0;
    return is_set || error_set(error, "out of memory");
}

// A script without an interpreter line: as shells do.
static void execute_as_script(const char *path, char **words) {
    size_t count = 0;
    while (words[count]) count++;
    char **shell = calloc(count + 2, sizeof *shell);
    if (!shell) return;
    shell[0] = "sh";
    shell[1] = (char *)(uintptr_t)path;
    memcpy(shell + 2, words + 1, count * sizeof *words);
    execv("/bin/sh", shell);
    free(shell);
}

int launch_plain(const char *path, char **words, const sigset_t *mask,
                 const struct limits *limits) {
    limits_restore(limits);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(path, words);
    int problem = errno;
    if (problem == ENOEXEC) execute_as_script(path, words);
    return problem;
}

// In the child: waits for the output's name, becomes the program.
static void launch_execute(const struct launch *launch, const char *path, char **words,
                           const sigset_t *mask, const struct limits *limits, int go, int report) {
    struct launch own = *launch;
    struct error error;
    char output[PATH_MAX];
    ssize_t length = read(go, output, sizeof output - 1);
    if (length <= 0) _exit(STATUS_NOT_FOUND);
    output[length] = 0;
    own.output = output;
    int problem = ENOMEM;
    if (launch_set_environment(&own, &error)) problem = launch_plain(path, words, mask, limits);
    ssize_t unused = write(report, &problem, sizeof problem);
    (void)unused;
    _exit(STATUS_NOT_FOUND);
}

bool launch_fork(const struct launch *launch, const char *path, char **words, const sigset_t *mask,
                 const struct limits *limits, struct launched *launched, struct error *error) {
    int go[2], report[2];
    if (pipe2(go, O_CLOEXEC) != 0) return error_set(error, "pipe: %s", strerror(errno));
    if (pipe2(report, O_CLOEXEC) != 0) {
        close(go[0]);
        close(go[1]);
        return error_set(error, "pipe: %s", strerror(errno));
    }
    *launched = (struct launched){.pid = fork(), .go = go[1], .report = report[0]};
    if (launched->pid == 0) {
        close(go[1]);  // its end comes when the tool's does
        launch_execute(launch, path, words, mask, limits, go[0], report[1]);
    }
    int problem = errno;
    close(go[0]);
    close(report[1]);
    if (launched->pid > 0) return true;
    close(go[1]);
    close(report[0]);
    return error_set(error, "fork: %s", strerror(problem));
}

void launch_cancel(struct launched *launched) {
    close(launched->go);
    close(launched->report);
    waitpid(launched->pid, NULL, 0);
}

bool launch_go(struct launched *launched, const char *output, const char *path, int *status,
               struct error *error) {
    int problem = 0;
    *status = STATUS_CANNOT_EXECUTE;
    ssize_t done = write(launched->go, output, strlen(output));
    if (done > 0 && launched->begin && !launched->begin(launched->context, launched->pid, error)) {
        *status = STATUS_REFUSED;
        kill(launched->pid, SIGKILL);
        launch_cancel(launched);
        return false;
    }
    ssize_t got = done > 0 ? read(launched->report, &problem, sizeof problem) : 0;
    close(launched->go);
    close(launched->report);
    if (done > 0 && got != sizeof problem) return true;
    waitpid(launched->pid, NULL, 0);
    if (problem == ENOENT) *status = STATUS_NOT_FOUND;
    return error_set(error, "%s: %s", path, problem ? strerror(problem) : "the child died early");
}

// Signals to cairn that are meant for the program.
static const int forwarded_signals[] = {SIGTERM, SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,
                                        SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};
enum { FORWARDED_COUNT = sizeof forwarded_signals / sizeof *forwarded_signals };

static void forwarded_set(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < FORWARDED_COUNT; i++) sigaddset(set, forwarded_signals[i]);
}

// Answers, for the number of a signal, whether it came; ends with the tool. Its signals are
// blocked.
static noreturn void witness_run(int tool) {
    const struct timespec no_time = {0};
    uint8_t number;
    prctl(PR_SET_NAME, "cairn-group");
    dup2(tool, STDIN_FILENO);
    // it must not hold the program's pipes open; before Linux 5.9 it does until cairn ends
    close_range(STDIN_FILENO + 1, UINT_MAX, 0);
    while (read(STDIN_FILENO, &number, sizeof number) == sizeof number) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        uint8_t has_come = sigtimedwait(&one, NULL, &no_time) == number;
        if (write(STDIN_FILENO, &has_come, sizeof has_come) < 0) break;
    }
    _exit(0);
}

// Without libc's fork: what libraries do in a forked child, this one has no use for.
static void witness_start(struct job *job) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    job->witness_pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
    if (job->witness_pid == 0) witness_run(ends[1]);
    close(ends[1]);
    if (job->witness_pid > 0)
        job->witness = ends[0];
    else
        close(ends[0]);
}

static void witness_end(struct job *job) {
    if (job->witness < 0) return;
    kill(job->witness_pid, SIGKILL);
    waitpid(job->witness_pid, NULL, 0);
    close(job->witness);
    job->witness = -1;
}

// The group's processes get a signal one after the other, so the witness has a moment's time. One
// that does not answer is stopped.
static bool was_for_group(const struct job *job, int number) {
    const struct timespec moment = {0, 1000000};
    enum { ANSWER_MS = 200 };
    struct pollfd answer = {.fd = job->witness, .events = POLLIN};
    uint8_t asked = (uint8_t)number, has_come = false;
    if (job->witness < 0) return false;
    nanosleep(&moment, NULL);
    bool is_answered = send(job->witness, &asked, sizeof asked, MSG_NOSIGNAL) == sizeof asked &&
                       poll(&answer, 1, ANSWER_MS) == 1 &&
                       recv(job->witness, &has_come, sizeof has_come, 0) == sizeof has_come;
    return is_answered && has_come;
}

bool job_prepare(struct job *job, struct error *error) {
    sigset_t handled, blocked;
    *job = (struct job){.signal_file = -1, .witness = -1};
    forwarded_set(&handled);
    blocked = handled;
    sigaddset(&blocked, SIGPIPE);  // the reader of the summary may be gone
    sigaddset(&blocked, SIGXFSZ);  // a limit of file sizes is an error of the recording's file
    sigprocmask(SIG_BLOCK, &blocked, &job->old_mask);
    limits_raise(&job->old_limits);
    job->signal_file = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    return job->signal_file >= 0 || error_set(error, "signalfd: %s", strerror(errno));
}

// What the kernel counts as this process' own peak is the floor of what it reports for a child that
// was forked from it.
void job_started(struct job *job, pid_t child) {
    struct rusage usage;
    job->child = child;
    getrusage(RUSAGE_SELF, &usage);
    job->own_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    witness_start(job);
}

static void ended(struct job *job, int status, const struct rusage *usage) {
    job->is_over = true;
    job->wait_status = status;
    job->rusage_peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
    if (job->rusage_peak_bytes <= job->own_peak_bytes) job->rusage_peak_bytes = 0;
}

// SIGSTOP is left out: who sends it to the program alone will continue the program alone.
static bool is_terminal_stop(int status) {
    return WIFSTOPPED(status) && (WSTOPSIG(status) == SIGTSTP || WSTOPSIG(status) == SIGTTIN ||
                                  WSTOPSIG(status) == SIGTTOU);
}

// Reaps whatever ended; as PID 1 that can be anybody's child.
static void reap(struct job *job) {
    struct rusage usage;
    int status = 0;
    pid_t pid;
    bool is_stopped = false;
    while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage)) > 0) {
        if (job->note && job->note(job->note_context, pid, status)) continue;
        if (pid != job->child) continue;
        if (WIFEXITED(status) || WIFSIGNALED(status)) ended(job, status, &usage);
        is_stopped = is_terminal_stop(status);
    }
    if (is_stopped && !job->is_over && getpid() != 1) raise(SIGSTOP);
}

static bool is_child_stopped(const struct job *job) {
    char state = process_state(job->child, 0);
    return !state || state == 'T';
}

static void forward(const struct job *job, const struct signalfd_siginfo *info) {
    int number = (int)info->ssi_signo;
    if (job->is_over || info->ssi_code == SI_KERNEL) return;
    // a job is continued with its whole group
    if (number == SIGCONT && !is_child_stopped(job)) return;
    if (was_for_group(job, number)) return;
    kill(job->child, number);
}

void job_handle(struct job *job) {
    struct signalfd_siginfo info;
    while (read(job->signal_file, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(job);
        else
            forward(job, &info);
    }
}

void job_finish(struct job *job) {
    sigset_t handled;
    struct signalfd_siginfo info;
    while (read(job->signal_file, &info, sizeof info) == sizeof info) {
    }
    forwarded_set(&handled);
    sigprocmask(SIG_UNBLOCK, &handled, NULL);
    close(job->signal_file);
    witness_end(job);
}

void job_end_alike(const struct job *job) {
    const struct rlimit none = {0};
    sigset_t one;
    int number = WIFSIGNALED(job->wait_status) ? WTERMSIG(job->wait_status) : 0;
    if (number != SIGINT && number != SIGQUIT) return;
    fflush(NULL);
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}
