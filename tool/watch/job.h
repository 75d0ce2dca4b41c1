// SPDX-License-Identifier: Apache-2.0
// The program as a child of the tool: its signals, its stops and its end, so that to a shell, a
// terminal, a container or a service manager the tool is as if it were the program.
//
// A signal that somebody sends to the tool is passed on. One that the whole process group was sent
// is not, since the program has it: from the terminal (the kernel says so), or from a process that
// signals groups, as CI runners and service managers do. The kernel does not tell who else got a
// signal, so a witness tells: a process of the group that does nothing but keep signals pending.
// When the program stops by the terminal's doing (Ctrl-Z), the tool stops too, so that the shell
// sees it.
//
// It is started so that it records itself.
#ifndef TOOL_WATCH_JOB_H
#define TOOL_WATCH_JOB_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"
#include "tool/watch/limits.h"

struct job {
    sigset_t old_mask;         // the program gets this one
    struct limits old_limits;  // and these
    int signal_file;           // readable when job_handle has work
    int witness;               // socket to it; -1: there is none
    pid_t witness_pid;
    pid_t child;
    bool is_over;
    int wait_status;  // of waitpid
    // Set before the program starts: takes what wait4 says of any process; true: nobody else is to
    // have it. NULL: nobody does.
    bool (*note)(void *context, pid_t pid, int status);
    void *note_context;
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

// Ends the tool as the program ended that the terminal's keys told to: a shell goes on with a loop
// or a list where its command ended with a status. Returns where another signal, or none, ended it,
// and in PID 1, which lives on.
void job_end_alike(const struct job *job);

struct launch_variable {
    const char *name, *value;
};
// Variables that say how to record; all variables.
enum { LAUNCH_RECORDING_VARIABLES = 19, LAUNCH_VARIABLES = LAUNCH_RECORDING_VARIABLES + 4 };

// What goes into the program's environment. Texts are NULL where they do not apply.
struct launch {
    char library[PATH_MAX];   // by library_find; "": nothing is preloaded
    const char *socket_name;  // CAIRN_SOCKET: a tool holds the recording
    const char *output;       // CAIRN_OUTPUT: the process writes its own file; with a socket: if
                              // nobody answers there
    bool is_for_python;       // PYTHONMALLOC=malloc: Python is to take each object from malloc
    const char *wrap_rows;    // CAIRN_WRAP
    const struct launch_variable *recording;  // how to record
    size_t recording_count;
};

// The variables that say how to record, with names; all but LD_PRELOAD. Their number.
size_t launch_variables(const struct launch *launch,
                        struct launch_variable variables[LAUNCH_VARIABLES]);

// Returns these variables as one text: NAME=VALUE, each ends in NUL, an empty one ends. NULL
// without memory; the caller frees it.
char *launch_text(const struct launch *launch);

// A child that waits to become the program.
struct launched {
    pid_t pid;
    int go, report;  // pipes to and from it
    // Called once it was told to execute; NULL: not. False, with the reason: it shall not begin.
    bool (*begin)(void *context, pid_t pid, struct error *error);
    void *context;
};

// Puts the variables into this process' environment, the library first in LD_PRELOAD.
bool launch_set_environment(const struct launch *launch, struct error *error);

// Becomes the program as it is, with the signal mask `mask` and these limits. Returns, with errno,
// if it cannot.
int launch_plain(const char *path, char **words, const sigset_t *mask, const struct limits *limits);

// Makes the child that will execute `path` with the signal mask `mask` and these limits. Its pid is
// known then, and nothing of the program has run.
bool launch_fork(const struct launch *launch, const char *path, char **words, const sigset_t *mask,
                 const struct limits *limits, struct launched *launched, struct error *error);

// Lets it execute, with `output` for CAIRN_OUTPUT. False, with `status` 126 or 127, when it could
// not be executed; 125 if it shall not begin.
bool launch_go(struct launched *launched, const char *output, const char *path, int *status,
               struct error *error);
void launch_cancel(struct launched *launched);

#endif
