// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/ahead.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RESET_ON_FORK = 1, NICEST = -20 };

static bool set(pid_t tid, const struct scheduling *scheduling) {
    return syscall(SYS_sched_setattr, tid, scheduling, 0) == 0;
}

static bool is_usual(const struct scheduling *scheduling) {
    return scheduling->policy == SCHED_OTHER || scheduling->policy == SCHED_BATCH ||
           scheduling->policy == SCHED_IDLE;
}

void ahead_take(struct ahead *ahead, pid_t tid) {
    struct scheduling *usual = &ahead->usual;
    ahead->is_taken = false;
    if (syscall(SYS_sched_getattr, tid, usual, sizeof *usual, 0) != 0 || !is_usual(usual)) return;
    struct scheduling first = {.size = sizeof first,
                               .policy = SCHED_FIFO,
                               .flags = usual->flags | RESET_ON_FORK,
                               .priority = 1};
    struct scheduling nice = *usual;
    nice.nice = NICEST;
    ahead->is_taken = set(tid, &first) || set(tid, &nice);
}

// Who may take it without CAP_SYS_NICE (RLIMIT_RTPRIO) may not take the flag away.
void ahead_give_back(struct ahead *ahead, pid_t tid) {
    if (ahead->is_taken && !set(tid, &ahead->usual)) {
        struct scheduling flagged = ahead->usual;
        flagged.flags |= RESET_ON_FORK;
        set(tid, &flagged);
    }
    ahead->is_taken = false;
}
