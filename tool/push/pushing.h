// SPDX-License-Identifier: Apache-2.0
// The work of `cairn push`: looks at processes, makes requests of what it sees, and has them
// delivered. Times are the caller's: `clock_ns` of CLOCK_MONOTONIC, `unix_ns` of the day.
#ifndef TOOL_PUSH_PUSHING_H
#define TOOL_PUSH_PUSHING_H

#include "tool/proc/cgroup.h"
#include "tool/push/curl.h"
#include "tool/push/engine.h"
#include "tool/push/target.h"

#define PUSH_LABELS_MOST 24

struct pushing {
    struct destination destination;
    const char *which;            // PID or NAME; NULL: all that the user records
    const struct cgroup *cgroup;  // of all: those in it and below; NULL: wherever they are
    struct export_label labels[PUSH_LABELS_MOST];  // as they were given; an empty value takes away
    size_t label_count;
    char host[256];
    ARRAY(struct target *) targets;
    bool has_looked;
    size_t process_count;  // of the last look
    struct queue queue;
    struct delivery delivery;
    struct error problem;  // the last request that could not be made
    uint64_t unmade;       // how many
};

// What is pushed is known: `which` has to mean a process that is being recorded. The queue is open.
bool pushing_start(struct pushing *pushing, struct sender sender, uint64_t clock_ns,
                   uint64_t unix_ns, struct error *error);
// The same of a recording, of which a request is made at once.
bool pushing_start_recording(struct pushing *pushing, struct sender sender, const char *path,
                             uint64_t unix_ns, struct error *error);
void pushing_close(struct pushing *pushing);

// Makes a request of what a process did since the last one, and begins the next interval.
bool pushing_add_target(struct pushing *pushing, struct target *target, uint64_t unix_ns,
                        struct error *error);

// Makes a request for each process (or one of the metrics of all). False: there is nothing more to
// come, since the process with the number `which` is over.
bool pushing_look(struct pushing *pushing, uint64_t clock_ns, uint64_t unix_ns);

#endif
