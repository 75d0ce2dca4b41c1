// SPDX-License-Identifier: Apache-2.0
// The recording of a process that is being recorded, by its pid.
#ifndef TOOL_CMDS_LIVE_H
#define TOOL_CMDS_LIVE_H

#include <limits.h>
#include <stdbool.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

// The path under which the recording can be read now: a file, or the memory that `cairn run` holds.
// False if there is no such process, if it is not recorded, or if it belongs to somebody else.
bool live_find(const char *pid, char path[PATH_MAX], struct error *error);

// A process that is being recorded. Names as they are in its recording: any bytes.
struct live_process {
    int pid;
    char path[PATH_MAX];         // of its recording, as live_find says it
    char program[NAME_MAX];      // base name of its program
    char called[NAME_MAX];       // base name of its first argument
    char destination[PATH_MAX];  // where its recording will lie; "": not known
};

// Whether a process is the one, or one of those, that `which` (a pid or a name) means.
bool live_is_meant(const struct live_process *process, const char *which);
// Why no process is meant: there is none, it is not being recorded, or it is not yours.
bool live_tell_absence(const char *which, struct error *error);
// The one process that is meant; false if there is none or more than one.
bool live_choose(const char *which, struct live_process *process, struct error *error);

// Every process that is being recorded and may be looked at, by pid. The list is for free().
struct live_list {
    ARRAY(struct live_process) processes;
};
bool live_list(struct live_list *list, struct error *error);
// Those whose recordings will lie in this directory.
bool live_list_of_run(const char *directory, struct live_list *list, struct error *error);

#endif
