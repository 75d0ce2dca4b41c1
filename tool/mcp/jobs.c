// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/confine.h"
#include "tool/base/unnamed_file.h"

enum {
    READ_BYTES = 64 << 10,
    END_BYTES = 8 << 10,  // of the other stream
    SUMMARY_BYTES = 256 << 10,
    SIGNAL_BASE = 128,  // status of a process that a signal ended
    END_SECONDS = 5,    // from SIGTERM to SIGKILL
    SAVE_SECONDS = 30,  // for a recording, once its program has been killed
};

static int open_process(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

static void close_from(int first) {
#ifdef SYS_close_range
    if (!syscall(SYS_close_range, first, ~0u, 0)) return;
#endif
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    const rlim_t most = 65536;  // on a kernel so old, nobody has more
    for (int i = first; i < (int)(limit.rlim_cur < most ? limit.rlim_cur : most); i++) close(i);
}

// The streams of the child: nothing to read, its two pipes, and the file of the summary.
static bool take_streams(const struct job *job, int out, int errors) {
    bool is_run = job->summary >= 0;
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool is_ok = dup2(empty, STDIN_FILENO) >= 0 &&
                 dup2(is_run ? errors : out, STDOUT_FILENO) >= 0 &&
                 dup2(errors, STDERR_FILENO) >= 0;
    if (is_run) {
        int summary = fcntl(job->summary, F_DUPFD_CLOEXEC, QUESTION_SUMMARY_FD + 1);
        is_ok = is_ok && dup3(summary, QUESTION_SUMMARY_FD, O_CLOEXEC) >= 0;
    }
    close_from(is_run ? QUESTION_SUMMARY_FD + 1 : QUESTION_SUMMARY_FD);
    return is_ok;
}

static _Noreturn void become_command(const struct job *job, pid_t server, int out, int errors,
                                     const struct roots *roots, jobs_command *run) {
    const struct question *question = job->question;
    const struct rlimit seconds = {(rlim_t)question->seconds, (rlim_t)question->seconds + 1};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != server) _exit(EXIT_FAILURE);
    setsid();
    signal(SIGPIPE, SIG_DFL);
    if (!take_streams(job, out, errors) || chdir(question->directory)) _exit(EXIT_FAILURE);
    if (!question->tool->is_run) {
        // the program that is recorded keeps its environment and its files
        setrlimit(RLIMIT_CPU, &seconds);
        setenv("COLUMNS", "100", 1);
        setenv("TERM", "dumb", 1);
        confine_to(roots->paths, roots->count);
    }
    int status = run((int)question->word_count, (char **)question->words);
    fflush(NULL);
    _exit(status);
}

static void close_descriptor(int *descriptor) {
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

bool job_begin(struct job *job, const struct roots *roots, jobs_command *run) {
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    pid_t server = getpid();
    job->process = job->out = job->errors = job->summary = -1;
    job->text = calloc(1, 1);
    job->end = malloc(2 * END_BYTES);
    bool is_ok = job->text && job->end && !pipe2(out, O_CLOEXEC) && !pipe2(errors, O_CLOEXEC);
    if (is_ok && job->question->tool->is_run)
        is_ok = (job->summary = unnamed_file_make("cairn-summary")) >= 0;
    job->pid = is_ok ? fork() : -1;
    if (!job->pid) become_command(job, server, out[1], errors[1], roots, run);
    close_descriptor(&out[1]);
    close_descriptor(&errors[1]);
    job->out = out[0];
    job->errors = errors[0];
    job->start_ns = clock_now_ns();
    if (job->pid < 0) {
        job->pid = 0;
        return false;
    }
    fcntl(job->out, F_SETFL, O_NONBLOCK);
    fcntl(job->errors, F_SETFL, O_NONBLOCK);
    job->process = open_process(job->pid);
    return true;
}

static void keep_text(struct job *job, const char *bytes, size_t count) {
    size_t room = ANSWER_OUTPUT_BYTES - job->text_bytes;
    size_t kept = count < room ? count : room;
    char *grown = kept ? realloc(job->text, job->text_bytes + kept) : NULL;
    job->is_cut |= kept < count || !grown;
    if (!grown) return;
    job->text = grown;
    memcpy(job->text + job->text_bytes, bytes, kept);
    job->text_bytes += kept;
}

// The last END_BYTES at least.
static void keep_end(struct job *job, const char *bytes, size_t count) {
    if (count > END_BYTES) {
        bytes += count - END_BYTES;
        count = END_BYTES;
    }
    if (job->end_bytes + count > 2 * END_BYTES) {
        size_t dropped = job->end_bytes - END_BYTES;
        memmove(job->end, job->end + dropped, END_BYTES);
        job->end_bytes = END_BYTES;
    }
    memcpy(job->end + job->end_bytes, bytes, count);
    job->end_bytes += count;
}

// Some reads at a time: other jobs want their turn.
static void read_stream(struct job *job, int *descriptor,
                        void (*keep)(struct job *job, const char *bytes, size_t count)) {
    enum { READS = 16 };
    static char bytes[READ_BYTES];
    for (int i = 0; i < READS && *descriptor >= 0; i++) {
        ssize_t count = read(*descriptor, bytes, sizeof bytes);
        if (count < 0 && errno == EAGAIN) return;
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            close_descriptor(descriptor);
        else
            keep(job, bytes, (size_t)count);
    }
}

bool job_go_on(struct job *job, int *status) {
    int raw;
    // first, so that all that it printed is read afterwards
    bool is_over = waitpid(job->pid, &raw, WNOHANG) == job->pid;
    read_stream(job, &job->out, keep_text);
    read_stream(job, &job->errors, keep_end);
    if (is_over) *status = WIFSIGNALED(raw) ? SIGNAL_BASE + WTERMSIG(raw) : WEXITSTATUS(raw);
    return is_over;
}

void job_end(struct job *job) {
    if (job->kill_ns) return;
    kill(job->pid, SIGTERM);
    job->kill_ns = clock_now_ns() + END_SECONDS * CLOCK_SECOND_NS;
}

// What `cairn run` waits for.
static void kill_children(pid_t pid) {
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *list = fopen(path, "re");
    while (list && fscanf(list, "%d", &child) == 1) kill(child, SIGKILL);
    if (list) fclose(list);
}

void job_kill(struct job *job) {
    if (job->question->tool->is_run && !job->is_program_killed) {
        job->is_program_killed = true;
        job->kill_ns = clock_now_ns() + SAVE_SECONDS * CLOCK_SECOND_NS;
        kill_children(job->pid);
        return;
    }
    kill(-job->pid, SIGKILL);
    kill(job->pid, SIGKILL);
}

static void read_summary(struct job *job) {
    char *text = malloc(SUMMARY_BYTES);
    ssize_t count = text ? pread(job->summary, text, SUMMARY_BYTES, 0) : -1;
    free(job->text);
    job->text = text;
    job->text_bytes = count > 0 ? (size_t)count : 0;
}

void job_outcome(struct job *job, int status, struct outcome *outcome) {
    bool is_run = job->question->tool->is_run;
    if (is_run) read_summary(job);
    *outcome = (struct outcome){.out = job->text,
                                .out_bytes = job->text_bytes,
                                .errors = job->end,
                                .errors_bytes = job->end_bytes,
                                .status = status,
                                .is_cut = job->is_cut,
                                .is_late = job->is_late,
                                .is_written = is_run && !access(job->question->output, F_OK)};
}

void job_free(struct job *job) {
    close_descriptor(&job->process);
    close_descriptor(&job->out);
    close_descriptor(&job->errors);
    close_descriptor(&job->summary);
    free(job->text);
    free(job->end);
    *job = (struct job){.process = -1, .out = -1, .errors = -1, .summary = -1};
}
