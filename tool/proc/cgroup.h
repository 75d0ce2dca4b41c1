// SPDX-License-Identifier: Apache-2.0
// A control group as the kernel accounts for its memory, of version 2 or 1: what it uses, how much
// it may, how often the kernel killed in it, and which processes are in it and those below.
#ifndef TOOL_PROC_CGROUP_H
#define TOOL_PROC_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/proc/process.h"

struct cgroup {
    char path[PATH_MAX];
    bool is_old;  // version 1
};

// What it uses beyond the pages of files that the kernel takes back first: those bring no kill.
struct cgroup_memory {
    uint64_t used_bytes;
    uint64_t limit_bytes;  // the least of its own and those above; UINT64_MAX: there is none
    uint64_t kills;        // since it was made
};

// `word`: a directory, or one below the place where cgroups (of memory) are mounted. False if it is
// no cgroup.
bool cgroup_find(const char *word, struct cgroup *cgroup, struct error *error);

// The same; false too if its memory is not accounted for, with what to do.
bool cgroup_open(const char *word, struct cgroup *cgroup, struct error *error);

// False if it is gone. While it uses less than `exact_from` bytes with the pages of files, it may
// be said to use those too, which takes less work.
bool cgroup_look(const struct cgroup *cgroup, uint64_t exact_from, struct cgroup_memory *memory);

enum { CGROUP_FILE_BYTES = 8192 };

// Reads one of its files as a text, terminated and cut. Returns its length; 0: it is not there.
size_t cgroup_read(const struct cgroup *cgroup, const char *name, char text[CGROUP_FILE_BYTES]);

// Returns true if it has such a file, and that may be read.
bool cgroup_has(const struct cgroup *cgroup, const char *name);

// Of the cgroup and all below it, by number. False without memory; the list is for array_free.
bool cgroup_list(const struct cgroup *cgroup, struct process_pids *list);

// The place of a process, as /proc/PID/cgroup tells; "": it does not.
struct cgroup_place {
    char path[256];         // of its cgroup, below the place where they are mounted
    char container_id[72];  // of a container's runtime
    char pod_uid[40];       // of Kubernetes
};

// Reads the text of such a file.
void cgroup_place_read(const char *text, struct cgroup_place *place);
void cgroup_place_of(pid_t pid, struct cgroup_place *place);

#endif
