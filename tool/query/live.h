// SPDX-License-Identifier: Apache-2.0
// Processes that are being recorded, and where their recordings can be read.
//
// A user names running processes, recorded or not, by number, or by any name that
// process_names has. A process that is called so (process_name) comes before others.
#ifndef TOOL_QUERY_LIVE_H
#define TOOL_QUERY_LIVE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

// The path under which the recording can be read now: a file, or the memory that `cairn run` holds.
// False if there is no such process, if it is not recorded, or if it belongs to somebody else.
bool live_find(const char *pid, char path[PATH_MAX], struct error *error);

// Returns true if a file starts like a recording: other files may have such a name.
bool live_is_recording(const char *path);

// A process that is being recorded.
struct live_process {
    int pid;
    char path[PATH_MAX];         // of its recording, as live_find says it
    char name[NAME_MAX];         // as process_name has it: any bytes
    char destination[PATH_MAX];  // where its recording will lie; "": not known
    bool is_own;                 // it is this user's, or recorded by a cairn of this user
};

// False: there is no such process, it is not recorded, or it may not be looked at.
bool live_describe(pid_t pid, struct live_process *process);

// Why no process is meant: there is none, it is not being recorded, or it is not yours.
bool live_tell_absence(const char *which, struct error *error);
// The one process that `which`, a number or a name as above, means; false if there is
// none or more than one.
bool live_choose(const char *which, struct live_process *process, struct error *error);

// Every process that is being recorded and may be looked at, by pid. The list is for free().
struct live_list {
    ARRAY(struct live_process) processes;
};
bool live_list(struct live_list *list, struct error *error);
// All that `which` means; false if there is none.
bool live_select(const char *which, struct live_list *list, struct error *error);
// One of them has to be chosen.
bool live_tell_several(const char *which, const struct live_list *list, struct error *error);
// Those whose recordings will lie in this directory.
bool live_list_of_run(const char *directory, struct live_list *list, struct error *error);

bool running_is_number(const char *text);

// Returns true if a command's word may mean a process: it is no path, and no file that answers by
// itself, as a recording or a core dump does.
bool running_may_be(const char *word);

// Counts the processes that are called so; `*first` becomes the one with the lowest pid.
size_t running_count(const char *name, pid_t *first);

// The only process that `which` means. Whether there is one with a number is not looked at.
bool running_find(const char *which, pid_t *pid, struct error *error);

// The same; of several that are called so, the one that all others are children of (nginx and its
// workers), or their children, if they are called so too.
bool running_find_tree(const char *which, pid_t *pid, struct error *error);

#endif
