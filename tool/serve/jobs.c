// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/unnamed_file.h"
#include "tool/query/progress.h"

// A large program's names take seconds, once; what takes so long is stuck.
static const uint64_t limit_ns = 120 * CLOCK_SECOND_NS;
enum { AT_WORK_MAX = 6, SAMPLING_MAX = 12, NICENESS = 10 };

static struct job *find(struct jobs *jobs, const char *key, uint64_t now_ns) {
    for (struct job *job = jobs->list; job < jobs->list + JOBS_MAX; job++) {
        bool is_good =
            job->state == JOB_RUNS || (job->state == JOB_DONE && now_ns < job->kept_until_ns);
        if (is_good && !strcmp(job->key, key)) return job;
    }
    return NULL;
}

static void clear(struct job *job) {
    if (job->file >= 0) close(job->file);
    *job = (struct job){.file = -1};
}

// A free place, at worst that of an answer that is kept for nobody. So many work at once, and so
// many wait for their span, that none of both keeps the other from its places.
static struct job *find_place(struct jobs *jobs, bool is_sampling) {
    struct job *place = NULL;
    unsigned same_count = 0;
    for (struct job *job = jobs->list; job < jobs->list + JOBS_MAX; job++) {
        same_count += job->state == JOB_RUNS && job->is_sampling == is_sampling;
        bool is_unused = job->state == JOB_FREE || (job->state != JOB_RUNS && !job->waiting);
        if (is_unused && (!place || job->kept_until_ns < place->kept_until_ns)) place = job;
    }
    if (same_count >= (is_sampling ? SAMPLING_MAX : AT_WORK_MAX)) return NULL;
    if (place && place->state != JOB_FREE) clear(place);
    return place;
}

// Of the server's descriptors the child keeps the recording's and its own: connections end when the
// server closes them.
static void close_others(int first, int second) {
    int low = first < second ? first : second, high = first < second ? second : first;
    const int from = STDERR_FILENO + 1;
    if (low > from) syscall(SYS_close_range, from, low - 1, 0);
    int next = low >= from ? low + 1 : from;
    if (high > next) syscall(SYS_close_range, next, high - 1, 0);
    syscall(SYS_close_range, (high >= from ? high : from - 1) + 1, ~0u, 0);
}

static int recording_of(const char *path) {
    static const char own[] = "/proc/self/fd/";
    return strncmp(path, own, strlen(own)) ? -1 : (int)strtol(path + strlen(own), NULL, 10);
}

static void prepare_child(int file, const char *path, pid_t parent, uint64_t wait_ns) {
    sigset_t none;
    const struct rlimit most = {.rlim_cur = limit_ns / CLOCK_SECOND_NS,
                                .rlim_max = limit_ns / CLOCK_SECOND_NS};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_FAILURE);
    signal(SIGINT, SIG_IGN);  // the server's answer to Ctrl-C is to end its children
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!wait_ns) setrlimit(RLIMIT_CPU, &most);
    setpriority(PRIO_PROCESS, 0, NICENESS);
    close_others(file, recording_of(path));
    progress_hide();
}

__attribute__((noreturn)) static void be_child(int file, const struct job_order *order,
                                               pid_t parent) {
    struct error error = {""};
    prepare_child(file, order->path, parent, order->wait_ns);
    FILE *out = fdopen(file, "w");
    if (!out) _exit(EXIT_FAILURE);
    bool is_made = order->make(order->path, order->request, out, &error);
    if (is_made && !fflush(out) && !ferror(out)) _exit(EXIT_SUCCESS);
    if (is_made) error_set(&error, "no memory for the answer");
    fflush(out);
    if (ftruncate(file, 0) || pwrite(file, error.text, strlen(error.text), 0) < 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

static bool begin(struct job *job, const struct job_order *order, struct error *error) {
    pid_t parent = getpid();
    int file = unnamed_file_make("answer");
    if (file < 0) return error_set(error, "no memory for an answer: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (!child) be_child(file, order, parent);
    if (child < 0) {
        close(file);
        return error_set(error, "no process for an answer: %s", strerror(errno));
    }
    uint64_t now_ns = clock_now_ns();
    *job = (struct job){.state = JOB_RUNS,
                        .child = child,
                        .file = file,
                        .start_ns = now_ns,
                        .deadline_ns = now_ns + limit_ns + order->wait_ns,
                        .keep_times = order->keep_times,
                        .is_sampling = order->wait_ns > 0};
    snprintf(job->key, sizeof job->key, "%s", order->key);
    return true;
}

struct job *jobs_join(struct jobs *jobs, const struct job_order *order, struct error *error) {
    struct job *job = find(jobs, order->key, clock_now_ns());
    if (!job) {
        job = find_place(jobs, order->wait_ns > 0);
        if (!job) {
            error_set(error, "too many requests at the same time; ask again in a second");
            return NULL;
        }
        if (!begin(job, order, error)) return NULL;
    }
    job->waiting++;
    return job;
}

void jobs_leave(struct job *job) {
    if (job->waiting) job->waiting--;
    if (!job->waiting && job->state != JOB_RUNS && !job->kept_until_ns) clear(job);
}

static uint64_t ns_of(struct timeval time) {
    const uint64_t ns_per_us = 1000;
    return (uint64_t)time.tv_sec * CLOCK_SECOND_NS + (uint64_t)time.tv_usec * ns_per_us;
}

static void end(struct job *job, int status, const struct rusage *used, uint64_t now_ns) {
    bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
    job->state = is_done ? JOB_DONE : JOB_FAILED;
    job->child = 0;
    job->taken_ns = ns_of(used->ru_utime) + ns_of(used->ru_stime);
    job->kept_until_ns =
        is_done && job->keep_times ? now_ns + CLOCK_SECOND_NS + job->keep_times * job->taken_ns : 0;
    if (!job->waiting && !job->kept_until_ns) clear(job);
}

bool jobs_reap(struct jobs *jobs, uint64_t now_ns) {
    bool has_ended = false;
    for (struct job *job = jobs->list; job < jobs->list + JOBS_MAX; job++) {
        struct rusage used;
        int status;
        if (job->state != JOB_RUNS) continue;
        if (now_ns > job->deadline_ns) kill(job->child, SIGKILL);
        if (wait4(job->child, &status, WNOHANG, &used) != job->child) continue;
        end(job, status, &used, now_ns);
        has_ended = true;
    }
    return has_ended;
}

void jobs_close(struct jobs *jobs) {
    for (struct job *job = jobs->list; job < jobs->list + JOBS_MAX; job++) {
        if (job->state == JOB_RUNS) {
            kill(job->child, SIGKILL);
            waitpid(job->child, NULL, 0);
        }
        if (job->state != JOB_FREE) clear(job);
    }
}
