// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/sched_boost.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RESET_ON_FORK = 1, NICEST = -20 };

static bool set_scheduling(pid_t tid, const struct scheduling *scheduling) {
    return syscall(SYS_sched_setattr, tid, scheduling, 0) == 0;
}

// A process that may take a priority without CAP_SYS_NICE (RLIMIT_RTPRIO) may not take the flag
// away.
static void put_back(pid_t tid, const struct scheduling *usual) {
    struct scheduling flagged = *usual;
    flagged.flags |= RESET_ON_FORK;
    if (!set_scheduling(tid, usual)) set_scheduling(tid, &flagged);
}

static bool is_usual(const struct scheduling *scheduling) {
    return scheduling->policy == SCHED_OTHER || scheduling->policy == SCHED_BATCH ||
           scheduling->policy == SCHED_IDLE;
}

// --- the guard

enum { GUARDED_MAX = 4096, GUARD_STACK_BYTES = 64 << 10, GUARD_PRIORITY = 2, GUARD_LOOK_US = 50 };

// `tid` is written last, and 0 while there is nothing to put back.
struct sched_guarded {
    struct scheduling usual;
    pid_t tid;  // (atomic)
};

static struct {
    struct sched_guarded entries[GUARDED_MAX];
    size_t last;  // where a free entry was found last
    size_t used;  // entries that are not free
    int ends[2];  // of a pipe that nobody writes to: the guard's, which reads its end, and the
                  // tool's
    pid_t tool;   // that started the guard; 0: none
    pid_t pid;    // the guard's
    bool is_there;
    int is_waiting;  // (atomic)
    _Alignas(64) uint8_t stack[GUARD_STACK_BYTES];
} guard;

// False: there was nothing to put back.
static bool put_back_all(void) {
    bool has_any = false;
    for (size_t i = 0; i < GUARDED_MAX; i++) {
        pid_t tid = __atomic_load_n(&guard.entries[i].tid, __ATOMIC_ACQUIRE);
        if (tid) put_back(tid, &guard.entries[i].usual);
        has_any |= tid != 0;
    }
    return has_any;
}

// The tool waits with its next call until this is set up: errno is the same for both. A thread that
// was making a call gives up its priority itself (tool/attach/stub.c), if it may not with the flag
// that children do not inherit it: so they are put back twice.
static int run_guard(void *unused) {
    const struct scheduling first = {
        .size = sizeof first, .policy = SCHED_FIFO, .priority = GUARD_PRIORITY};
    const struct timespec soon = {0, 20000000};
    uint64_t all = UINT64_MAX;
    char byte;
    (void)unused;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
    syscall(SYS_setsid);
    syscall(SYS_prctl, PR_SET_NAME, "cairn-guard");
    syscall(SYS_dup3, guard.ends[0], 0, 0);
    if (syscall(SYS_close_range, 1, UINT32_MAX, 0) != 0) syscall(SYS_close, guard.ends[1]);
    if (!set_scheduling(0, &first)) syscall(SYS_setpriority, PRIO_PROCESS, 0, NICEST);
    __atomic_store_n(&guard.is_waiting, 1, __ATOMIC_RELEASE);
    syscall(SYS_read, 0, &byte, sizeof byte);
    if (put_back_all()) {
        syscall(SYS_nanosleep, &soon, NULL);
        put_back_all();
    }
    syscall(SYS_exit_group, 0);
    return 0;
}

// The tool ends by itself: nothing is left for whoever inherits its children.
static void end_guard(void) {
    if (guard.tool != getpid() || !guard.is_there) return;
    close(guard.ends[1]);
    waitpid(guard.pid, NULL, __WALL);
}

// False: it has ended, since something forbids it a call.
static bool await_guard(pid_t pid) {
    while (!__atomic_load_n(&guard.is_waiting, __ATOMIC_ACQUIRE)) {
        if (waitpid(pid, NULL, __WALL | WNOHANG) != 0) return false;
        usleep(GUARD_LOOK_US);
    }
    return true;
}

// Once for each process: a child of the tool has none until it needs one.
static bool start_guard(void) {
    pid_t tool = getpid();
    if (guard.tool == tool) return guard.is_there;
    guard.tool = tool;
    guard.is_waiting = 0;
    for (size_t i = 0; i < GUARDED_MAX; i++) guard.entries[i].tid = 0;
    guard.used = 0;
    guard.is_there = pipe2(guard.ends, O_CLOEXEC) == 0;
    if (!guard.is_there) return false;
    // no signal: the tool's waits for children do not see it
    guard.pid = clone(run_guard, guard.stack + sizeof guard.stack, CLONE_VM, NULL);
    guard.is_there = guard.pid > 0 && await_guard(guard.pid);
    close(guard.ends[0]);
    if (!guard.is_there)
        close(guard.ends[1]);
    else
        atexit(end_guard);
    return guard.is_there;
}

// NULL: it cannot be guarded.
static struct sched_guarded *guard_thread(pid_t tid, const struct scheduling *usual) {
    for (size_t i = 0; guard.used < GUARDED_MAX && i < GUARDED_MAX; i++) {
        struct sched_guarded *entry = &guard.entries[(guard.last + i) % GUARDED_MAX];
        if (entry->tid) continue;
        guard.last = (guard.last + i + 1) % GUARDED_MAX;
        entry->usual = *usual;
        __atomic_store_n(&entry->tid, tid, __ATOMIC_RELEASE);
        guard.used++;
        return entry;
    }
    return NULL;
}

static void unguard(struct sched_boost *boost) {
    if (!boost->guarded) return;
    __atomic_store_n(&boost->guarded->tid, 0, __ATOMIC_RELEASE);
    boost->guarded = NULL;
    if (guard.used) guard.used--;  // a child has none of what its parent guarded
}

// --- ahead of other threads on the machine

void sched_boost(struct sched_boost *boost, pid_t tid) {
    struct scheduling *usual = &boost->usual;
    boost->is_taken = false;
    boost->guarded = NULL;
    bool is_guarded = start_guard();  // before anything is stopped
    if (syscall(SYS_sched_getattr, tid, usual, sizeof *usual, 0) != 0 || !is_usual(usual)) return;
    if (tid && !(is_guarded && (boost->guarded = guard_thread(tid, usual)))) return;
    struct scheduling first = {.size = sizeof first,
                               .policy = SCHED_FIFO,
                               .flags = usual->flags | RESET_ON_FORK,
                               .priority = 1};
    struct scheduling nice = *usual;
    nice.nice = NICEST;
    boost->is_taken = set_scheduling(tid, &first) || set_scheduling(tid, &nice);
    if (!boost->is_taken) unguard(boost);
}

void sched_unboost(struct sched_boost *boost, pid_t tid) {
    if (boost->is_taken) put_back(tid, &boost->usual);
    boost->is_taken = false;
    unguard(boost);
}
