// SPDX-License-Identifier: Apache-2.0
// The program as a child of the tool: its signals, its stops and its end, so that to a shell, a
// terminal, a container or a service manager the tool is as if it were the program.
//
// A signal that somebody sends to the tool is passed on. One that the whole process group was sent
// is not, since the program has it: from the terminal (the kernel says so), or from a process that
// signals groups, as CI runners and service managers do. The kernel does not tell who else got a
// signal, so a witness tells: a process of the group that does nothing but keep signals pending.
// When the program stops by the terminal's doing (Ctrl-Z),
// the tool stops too, so that the shell sees it.
#ifndef TOOL_WATCH_JOB_H
#define TOOL_WATCH_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tool/base/error.h"

struct job {
    sigset_t old_mask;        // the program gets this one
    struct rlimit old_files;  // and this limit of descriptors
    int signal_file;          // readable when job_handle has work
    int witness;              // socket to it; -1: there is none
    pid_t witness_pid;
    pid_t child;
    bool is_over;
    int wait_status;  // of waitpid
    uint64_t own_peak_bytes;
    uint64_t rusage_peak_bytes;  // resident memory of the program and its children; 0: unknown
};

// Before the program starts: takes the signals, raises the tool's own limit of descriptors.
bool job_prepare(struct job *job, struct error *error);
void job_started(struct job *job, pid_t child);

// Handles the signals that have come.
void job_handle(struct job *job);

// The program is over and everything is saved: signals mean the tool itself again.
void job_finish(struct job *job);

#endif
