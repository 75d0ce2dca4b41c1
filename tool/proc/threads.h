// SPDX-License-Identifier: Apache-2.0
// All threads of a process stopped at once, by ptrace (SEIZE, INTERRUPT): no signal is sent that
// the process could see. While they are stopped nothing else of the process happens.
//
// ptrace belongs to a thread of the tool: one and the same thread calls all of this. From the first
// thread that stops to the last one that goes on its priority is raised (sched_boost): each thread
// that goes on would otherwise run instead of it, while the rest are still stopped. So is that of
// every thread from being asked to stop until it has stopped: it needs a processor for that.
#ifndef TOOL_PROC_THREADS_H
#define TOOL_PROC_THREADS_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/base/reserve.h"
#include "tool/proc/registers.h"
#include "tool/proc/sched_boost.h"

struct stopped_thread {
    pid_t tid;
    int signal;  // that was on its way to it; 0: none
    struct registers registers;
    struct sched_boost boost;
};

struct threads {
    pid_t pid;
    ARRAY(struct stopped_thread) stopped;
    uint64_t since_ns;       // CLOCK_MONOTONIC, when the first one was asked to stop
    uint64_t pause_ns;       // from then until the last one went on
    bool is_one_late;        // why the last stop failed: a thread did not stop in time
    bool is_one_starting;    // since it waits for a program that it starts
    struct sched_boost own;  // of this thread of the tool
    struct reserve reserve;  // for what is allocated while they are stopped
};

// Stops every thread. One that waits for a program that it starts (vfork), or that does not get a
// processor, is waited for while the others go on. False, with none of them stopped any more, if
// that is refused or one does not stop in time. Memory for what is allocated until they go on is
// taken before: without it none of them is stopped.
bool threads_stop(struct threads *threads, pid_t pid, struct error *error);

// Stops one thread alone, while the others go on. `stopped` is empty if it has ended meanwhile.
bool threads_stop_one(struct threads *threads, pid_t pid, pid_t tid, struct error *error);

// Lets all but one go on (0: all), and lets go of them. Signals that were on their way arrive.
void threads_go(struct threads *threads, pid_t but);

// Frees what is kept for the next stop.
void threads_free(struct threads *threads);

// One that can make calls; NULL: all are on the way of a signal.
const struct stopped_thread *threads_without_signal(const struct threads *threads);

// Waits until a stopped thread that goes on stops again: the status of waitpid, or -1 if
// it does not for so long; 0 if it is gone.
int threads_wait(pid_t tid, uint64_t timeout_ns);

#endif
