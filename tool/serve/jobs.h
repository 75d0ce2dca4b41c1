// SPDX-License-Identifier: Apache-2.0
// Answers that take time are made by a child of the server each: it reads the recording, looks
// names up, writes the answer into memory that both have, and ends. So the server goes on with
// others, its memory does not grow by what an answer took, and a recording that breaks its reader
// breaks one answer. Children are few, give way to other work (nice), and are ended when they take
// too long.
//
// Requests for the same answer wait for the same child.
#ifndef TOOL_SERVE_JOBS_H
#define TOOL_SERVE_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool/base/error.h"

#define JOBS_MAX 24  // at the same time
#define JOB_KEY_BYTES 96

// Writes an answer in the child. `path` is that of the recording there.
typedef bool job_make(const char *path, const void *request, FILE *out, struct error *error);

enum job_state { JOB_FREE, JOB_RUNS, JOB_DONE, JOB_FAILED };

struct job {
    enum job_state state;
    char key[JOB_KEY_BYTES];
    pid_t child;
    int file;  // the answer, or why there is none
    uint64_t start_ns, deadline_ns;
    uint64_t taken_ns;       // by the answer, of the processor
    unsigned keep_times;     // as in job_order
    uint64_t kept_until_ns;  // it answers the same question until then
    unsigned waiting;        // requests that use it
    bool is_sampling;        // it waits for most of its time
};

struct jobs {
    struct job list[JOBS_MAX];
};

struct job_order {
    const char *key;
    const char *path;  // of the recording
    job_make *make;
    const void *request;
    uint64_t wait_ns;     // that it waits before it can answer; 0 usually
    unsigned keep_times;  // the answer is good for a second, and so many times what it took
};

// The job of this key, running or still good, or a new one; the caller uses it until jobs_leave.
// NULL: too many run.
struct job *jobs_join(struct jobs *jobs, const struct job_order *order, struct error *error);
void jobs_leave(struct job *job);

// Collects children that have ended, and ends those that take too long. True if one ended.
bool jobs_reap(struct jobs *jobs, uint64_t now_ns);

// Ends all that run.
void jobs_close(struct jobs *jobs);

#endif
