// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/proc/process.h"
#include "tool/proc/remote.h"

#define STOP_PATIENCE_NS UINT64_C(2000000000)
// How long a thread is waited for before it is checked whether it started a program (vfork,
// posix_spawn): then it stops when that has begun. So long, the process goes on.
#define SOON_NS UINT64_C(5000000)
// Time for which a stop is tried in all.
#define LATE_PATIENCE_NS UINT64_C(10000000000)

// Looks in quick succession first: a stop takes some microseconds.
enum { EAGER_LOOKS = 200, PAUSE_US = 50, STARTS_PAUSE_US = 500 };

// --- waiting for a stop

int threads_wait(pid_t tid, uint64_t timeout_ns) {
    uint64_t end = clock_now_ns() + timeout_ns;
    for (unsigned look = 0;; look++) {
        int status = 0;
        pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == tid) return WIFSTOPPED(status) ? status : 0;
        if (got < 0 && errno != EINTR) return 0;
        // the end of a process shows in its main thread, once all others were waited for
        if (clock_now_ns() > end) return process_has_ended(process_state(tid, 0)) ? 0 : -1;
        if (look > EAGER_LOOKS) usleep(PAUSE_US);
    }
}

// True for a thread among the first `count` that are stopped. They are listed in the order in
// which they were asked: the one behind the last one found, `*next`, is looked at first.
static bool is_known(const struct threads *threads, size_t count, size_t *next, pid_t tid) {
    for (size_t i = 0; i < count; i++) {
        size_t at = (*next + i) % count;
        if (threads->stopped.items[at].tid != tid) continue;
        *next = at + 1;
        return true;
    }
    return false;
}

// The flags of a thread's clone or clone3; all where they cannot be read.
static uint64_t flags_of_clone(pid_t pid, long call, uint64_t argument) {
    const struct remote remote = remote_of(pid);
    uint64_t flags = argument;
    if (call == SYS_clone3 && !remote_read(&remote, argument, &flags, sizeof flags))
        return UINT64_MAX;
    return flags;
}

// Whether a thread waits for a program that it starts, or for a child that has its memory.
static bool is_starting(pid_t pid, pid_t tid) {
    char name[PROCESS_PATH_BYTES];
    long call = -1;
    uint64_t argument = 0;
    if (process_state(pid, tid) != 'D') return false;
    snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
    FILE *file = process_open_text(pid, name);
    bool is_read = file && fscanf(file, "%ld %" SCNx64, &call, &argument) == 2;
    if (file) fclose(file);
#ifdef SYS_vfork
    if (call == SYS_vfork) return is_read;
#endif
    return is_read && (call == SYS_clone || call == SYS_clone3) &&
           flags_of_clone(pid, call, argument) & CLONE_VFORK;
}

// Seizes one thread and asks it to stop; it counts as stopped from now on. One that could not be
// let go of, since it did not stop before, is seized already.
static bool thread_ask(struct threads *threads, pid_t tid, struct error *error) {
    bool is_new = ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) == 0;
    int cause = errno;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 && !is_new) {
        // such as a main thread whose process goes on without it
        if (process_has_ended(process_state(threads->pid, tid))) return true;
        return error_set(error, "ptrace is refused: %s", strerror(cause));
    }
    struct stopped_thread *thread = array_push(&threads->stopped);
    if (!thread) {
        threads_wait(tid, STOP_PATIENCE_NS);
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
        return error_set(error, "out of memory");
    }
    *thread = (struct stopped_thread){.tid = tid};
    sched_boost(&thread->boost, tid);
    return true;
}

// Asks all threads that are not known yet; `found` says whether there were any.
static bool ask_new(struct threads *threads, bool *found, struct error *error) {
    struct process_list list;
    *found = false;
    if (!process_list_threads(&list, threads->pid))
        return errno == ENOMEM ? error_set(error, "out of memory") : process_say_unreadable(error);
    bool is_ok = true;
    size_t known = threads->stopped.count, next = 0;  // a listing names each thread once
    for (pid_t tid; is_ok && (tid = process_list_next(&list));) {
        if (is_known(threads, known, &next, tid)) continue;
        size_t before = threads->stopped.count;
        is_ok = thread_ask(threads, tid, error);
        if (threads->stopped.count > before) *found = true;
    }
    process_list_close(&list);
    return is_ok;
}

// Waits for the stops of the threads from number `from` on; those that ended are left out.
static bool await_stops(struct threads *threads, size_t from, struct error *error) {
    for (size_t i = from; i < threads->stopped.count;) {
        struct stopped_thread *thread = &threads->stopped.items[i];
        int status = threads_wait(thread->tid, SOON_NS);
        threads->is_one_starting = status < 0 && is_starting(threads->pid, thread->tid);
        if (status < 0 && !threads->is_one_starting)
            status = threads_wait(thread->tid, STOP_PATIENCE_NS);
        sched_unboost(&thread->boost, thread->tid);
        threads->is_one_late = status < 0;
        if (status < 0)
            return error_set(error, "thread %d does not stop: it waits %s", (int)thread->tid,
                             threads->is_one_starting ? "for a program that it starts (vfork)"
                                                      : "in the kernel");
        bool is_there = status && registers_get(thread->tid, &thread->registers);
        if (!is_there) {
            *thread = threads->stopped.items[--threads->stopped.count];
            continue;
        }
        // a stop on the way of a signal, and not the one that was asked for
        if (status >> 16 == 0) thread->signal = WSTOPSIG(status);
        i++;
    }
    return true;
}

// Returns how many threads there are; those that begin meanwhile are few.
static size_t count_threads(pid_t pid) {
    struct process_list list;
    size_t count = 0;
    process_list_threads(&list, pid);
    while (process_list_next(&list)) count++;
    process_list_close(&list);
    return count;
}

// Returns what looks at the stacks of so many threads, and calls in the process, need.
static size_t memory_for(size_t count) {
    const size_t least_bytes = 1 << 20, thread_bytes = 4 << 10;
    return least_bytes + count * thread_bytes;
}

// Takes the memory for a stop of so many threads, their list too.
static bool take_memory(struct threads *threads, size_t count) {
    while (threads->stopped.capacity < count)
        if (!array_make_room((void **)&threads->stopped.items, &threads->stopped.capacity,
                             threads->stopped.capacity, sizeof *threads->stopped.items))
            return false;
    return reserve_take(&threads->reserve, memory_for(count));
}

static bool begin(struct threads *threads, pid_t pid, size_t count, struct error *error) {
    bool has_memory = take_memory(threads, count);
    threads->pid = pid;
    threads->stopped.count = 0;
    if (!has_memory) return error_set(error, "out of memory");
    sched_boost(&threads->own, 0);
    reserve_use(&threads->reserve, memory_for(count));
    threads->since_ns = clock_now_ns();
    return true;
}

bool threads_stop_one(struct threads *threads, pid_t pid, pid_t tid, struct error *error) {
    if (!begin(threads, pid, 1, error)) return false;
    bool is_ok = thread_ask(threads, tid, error) && await_stops(threads, 0, error);
    if (!is_ok || !threads->stopped.count) threads_go(threads, 0);
    return is_ok;
}

// Whether there is a thread that would not stop before the program that it starts has begun.
static bool is_any_starting(pid_t pid) {
    struct process_list list;
    bool is_any = false;
    process_list_threads(&list, pid);
    for (pid_t tid; !is_any && (tid = process_list_next(&list));) is_any = is_starting(pid, tid);
    process_list_close(&list);
    return is_any;
}

static bool stop_once(struct threads *threads, pid_t pid, struct error *error) {
    bool found = true, is_ok = true;
    if (!begin(threads, pid, count_threads(pid), error)) return false;
    while (found && is_ok) {
        size_t from = threads->stopped.count;
        is_ok = ask_new(threads, &found, error) && await_stops(threads, from, error);
    }
    if (is_ok && !threads->stopped.count) is_ok = process_say_unreadable(error);
    if (!is_ok) threads_go(threads, 0);
    return is_ok;
}

bool threads_stop(struct threads *threads, pid_t pid, struct error *error) {
    uint64_t end = clock_now_ns() + LATE_PATIENCE_NS;
    for (;;) {
        while (is_any_starting(pid) && clock_now_ns() < end) usleep(STARTS_PAUSE_US);
        threads->is_one_starting = threads->is_one_late = false;
        if (stop_once(threads, pid, error)) return true;
        if (!threads->is_one_late || clock_now_ns() > end) return false;
    }
}

void threads_go(struct threads *threads, pid_t but) {
    size_t kept = 0;
    for (size_t i = 0; i < threads->stopped.count; i++) {
        struct stopped_thread *thread = &threads->stopped.items[i];
        sched_unboost(&thread->boost, thread->tid);  // one that did not stop
        if (thread->tid == but)
            threads->stopped.items[kept++] = *thread;
        else
            ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
    }
    threads->stopped.count = kept;
    if (kept) return;
    threads->pause_ns = clock_now_ns() - threads->since_ns;
    take_memory(threads, threads->stopped.capacity);  // for the next stop, while there is some
    sched_unboost(&threads->own, 0);
}

void threads_free(struct threads *threads) {
    array_free(&threads->stopped);
    reserve_free(&threads->reserve);
}

const struct stopped_thread *threads_without_signal(const struct threads *threads) {
    for (size_t i = 0; i < threads->stopped.count; i++)
        if (!threads->stopped.items[i].signal) return &threads->stopped.items[i];
    return NULL;
}
