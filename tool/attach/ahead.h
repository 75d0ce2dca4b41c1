// SPDX-License-Identifier: Apache-2.0
// A thread that the stop of a process waits for, ahead of all others on the machine for that
// moment: of the tool, or of the process itself. A better nice value does not do, since it
// counts within a control group or session only; so a real-time priority is taken, the lowest. Only
// where the system allows it (root, CAP_SYS_NICE), and only from threads of the usual policies.
//
// What a thread had is put back to the last field. While it is ahead, threads and processes that
// it starts are not.
#ifndef TOOL_ATTACH_AHEAD_H
#define TOOL_ATTACH_AHEAD_H

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

struct ahead {
    struct scheduling usual;
    bool is_taken;
};

// `tid` 0: the calling thread. Does nothing if that is not allowed.
void ahead_take(struct ahead *ahead, pid_t tid);
void ahead_give_back(struct ahead *ahead, pid_t tid);

#endif
