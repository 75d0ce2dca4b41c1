// SPDX-License-Identifier: Apache-2.0
// The processes of a control group, and what they have of its memory: anonymous memory by process
// and kind, and files and shared memory by name.
//
// Pages that several processes have, as after a fork, are shared out among them (PSS), so that
// nothing is counted twice. A page is charged to the group that touched it first: a process may
// have pages that another group is charged for, as one that was moved here.
//
// No process is stopped. Free memory of glibc's malloc is read while it goes on (free_chunks.h).
#ifndef TOOL_WATCH_CGROUP_PROCESSES_H
#define TOOL_WATCH_CGROUP_PROCESSES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/proc/cgroup.h"
#include "tool/watch/rss_parts.h"

// Anonymous memory.
enum memory_kind {
    KIND_IN_USE,  // of glibc's malloc: blocks, with their rounding and the threads' caches
    KIND_FREE,    // of glibc's malloc, resident
    KIND_HEAP,    // in use, free, or mapped by the program: not known
    KIND_MAPPED,  // mapped by the program, or by another allocator than glibc's
    KIND_NAMED,   // the same, with a name (PR_SET_VMA_ANON_NAME)
    KIND_STACKS,
    KIND_DATA,  // of programs and libraries
    KIND_OWN,   // cairn's, of a process that is recorded
    KINDS,
};

struct cgroup_process {
    pid_t pid;
    uint64_t born;        // process_stat
    char name[NAME_MAX];  // safe to print
    uint64_t rss_bytes, swap_bytes;
    uint64_t bytes[KINDS];     // shares of anonymous memory
    uint64_t anonymous_bytes;  // their sum
    bool is_cut;               // there is more free memory than was counted
    bool is_recorded;
};

// A file, or shared memory by its name.
struct cgroup_file {
    char *name;                           // any bytes
    uint64_t bytes;                       // in memory, whichever group is charged for it
    uint64_t mapped_bytes, cached_bytes;  // what of it is mapped, and cached where it is open
    bool is_shared;                       // no page cache: tmpfs, memfd
};

struct cgroup_processes {
    ARRAY(struct cgroup_process) items;  // the most anonymous memory first
    ARRAY(struct mapped_name) names;     // of KIND_NAMED, as shares in pss_bytes, the most first
    ARRAY(struct cgroup_file) files;     // the most first
    uint64_t bytes[KINDS];
    uint64_t anonymous_bytes;
    uint64_t page_table_bytes;
    uint64_t thread_count;
    size_t refused_count;  // that may not be read
    size_t hidden_count;   // of another name space of pids
    size_t ended_count;    // while they were looked at
    bool is_cut;           // of KIND_FREE there is more
    bool has_open_files;   // files that are open and not mapped are in the list, too
};

// Looks at all of them. `own_bytes`: says whether a process is being recorded, and then what cairn
// takes in it; NULL: none is. False without memory.
bool cgroup_processes_read(const struct cgroup *cgroup,
                           bool (*own_bytes)(pid_t pid, uint64_t *bytes),
                           struct cgroup_processes *processes);
void cgroup_processes_free(struct cgroup_processes *processes);

// Returns the kind's name in JSON, and as people read it.
const char *memory_kind_key(enum memory_kind kind);
const char *memory_kind_text(enum memory_kind kind);

#endif
