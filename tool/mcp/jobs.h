// SPDX-License-Identifier: Apache-2.0
// Questions as processes: each is answered by a fork of the server that runs one command line of
// cairn, in a session of its own, confined to the roots. A command that hangs, crashes or takes too
// much ends alone, and a cancelled one is simply ended. What it prints is kept up to a bound.
//
// If the server dies, however, its jobs get SIGTERM; `cairn run` hands that to its program.
#ifndef TOOL_MCP_JOBS_H
#define TOOL_MCP_JOBS_H

#include <stdint.h>
#include <sys/types.h>

#include "tool/mcp/answer.h"

struct job {
    struct question *question;
    pid_t pid;                 // 0: it waits for its turn
    int process, out, errors;  // descriptors, -1: closed; `process` is readable at the end
    int summary;               // of a run: the file that the summary goes to
    char *text, *end;          // what was printed, and of the other stream the last part
    size_t text_bytes, end_bytes;
    uint64_t start_ns, kill_ns;  // kill_ns: SIGKILL then; 0: nothing was said yet
    bool is_program_killed;      // the program of a run was: SIGKILL for all of it is next
    uint64_t told_s;             // progress
    bool is_cut, is_late, is_cancelled;
};

// What runs a command line, in the child.
typedef int jobs_command(int argc, char **argv);

bool job_begin(struct job *job, const struct roots *roots, jobs_command *run);
// Reads what there is. Returns whether the process has ended; then `status` is its status.
bool job_go_on(struct job *job, int *status);
// Asks it to end (SIGTERM). Once `kill_ns` has come, job_kill makes it end: at first the program
// that a run records, so that what was recorded is saved, and a while later all of it.
void job_end(struct job *job);
void job_kill(struct job *job);
// Fills the outcome; it points into the job. job_free ends with it.
void job_outcome(struct job *job, int status, struct outcome *outcome);
void job_free(struct job *job);

#endif
