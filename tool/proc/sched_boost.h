// SPDX-License-Identifier: Apache-2.0
// A thread's scheduling while it runs ahead of all others on the machine, to shorten a stop. A nice
// value would not do, since it counts within a control group or session only; so the thread gets
// the lowest real-time priority, where the system allows it (root, CAP_SYS_NICE) and if its policy
// is one of the usual ones. Threads and processes that it starts meanwhile do not inherit it.
//
// Should the tool be killed meanwhile, a guard puts back what threads of other processes had: a
// process that shares the tool's memory, waits for its end, and ends with it. It has a session of
// its own, so that signals to the tool's process group do not end it.
#ifndef TOOL_PROC_SCHED_BOOST_H
#define TOOL_PROC_SCHED_BOOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// The kernel's struct sched_attr, in its first form.
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

struct sched_boost {
    struct scheduling usual;  // put back to the last field
    bool is_taken;
    struct sched_guarded *guarded;  // the guard's entry; NULL: none
};

// `tid` 0: the calling thread. Does nothing if that is not allowed.
void sched_boost(struct sched_boost *boost, pid_t tid);
void sched_unboost(struct sched_boost *boost, pid_t tid);

#endif
