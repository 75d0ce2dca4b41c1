// SPDX-License-Identifier: Apache-2.0
// What `cairn attach --cgroup` knows while it watches, and its parts: processes and their kills
// (oom_processes.c), what is kept of them (oom_keep.c), the watch itself (attach_cgroup.c).
#ifndef TOOL_CMDS_OOM_H
#define TOOL_CMDS_OOM_H

#include <limits.h>

#include "tool/base/units.h"
#include "tool/cmds/evidence.h"
#include "tool/proc/cgroup.h"
#include "tool/query/arguments.h"
#include "tool/watch/control.h"

#define MEBIBYTE (UINT64_C(1) << 20)
#define TAKINGS_MOST 4

struct oom_process {
    pid_t pid;
    uint64_t born;
    char name[NAME_MAX];  // safe text
    uint64_t rss_bytes;
    bool is_seen;       // in the last listing
    bool is_wanted;     // evidence is to be taken
    bool has_evidence;  // copied, at least
    bool is_refused;    // it could not be copied, and its text says why
    bool is_attached;
    bool is_told;         // its end was
    uint64_t taken_ns;    // 0: never
    uint64_t gone_ns;     // when its end was noticed; 0: it was not
    char base[PATH_MAX];  // of its evidence
};

struct measured_at {
    uint64_t at_ns, used_bytes;
};

// Evidence that is being taken: of one process at a time until it is copied, while that of others
// is worked out still.
struct oom_taking {
    struct evidence evidence;  // child 0: the place is free
    pid_t pid;
};

struct oom_guard {
    const struct command_args *args;
    struct cgroup cgroup;
    struct schedule schedule;  // for its rule
    const char *directory;
    uint64_t copied_most;
    int signal_file, log;
    struct cgroup_memory memory;
    uint64_t limit_bytes;                  // of the rule
    struct measured_at before;             // growth is from there to now
    struct measured_at seen, before_kill;  // the last look, and the last one before a kill
    double growth;                         // bytes a second
    uint64_t kills, untold_kills, killed_ns;
    uint64_t crossed_ns;                          // when the rule was met; 0: it is not
    uint64_t crossed_seen_ns, crossed_before_ns;  // at the last look, and at that before a kill
    bool is_armed;
    uint64_t taken_used_bytes, next_listing_ns;
    double taken_growth;  // when evidence was taken last
    ARRAY(struct oom_process) processes;
    struct oom_taking takings[TAKINGS_MOST];
    ARRAY(pid_t) attached;  // cairns that record
};

// Printed, and written down in oom.log.
__attribute__((format(printf, 2, 3))) void oom_say(const struct oom_guard *guard,
                                                   const char *format, ...);
struct unit_text oom_size(uint64_t bytes);
// When evidence was taken last: "+20.2 MiB/s".
struct unit_text oom_growth(const struct oom_guard *guard);

// `born` 0: whenever that was.
struct oom_process *oom_find_process(const struct oom_guard *guard, pid_t pid, uint64_t born);
// Takes note of who is in the cgroup now, and of who is gone. False without memory.
bool oom_list_processes(struct oom_guard *guard, uint64_t now_ns);
void oom_forget_gone(struct oom_guard *guard, uint64_t now_ns);
bool oom_is_gone(const struct oom_process *process);
// What became of those that the kernel killed since.
void oom_say_kills(struct oom_guard *guard, uint64_t now_ns);

// Of which processes evidence is wanted: the largest, that were not taken lately.
void oom_choose(struct oom_guard *guard, uint64_t now_ns);
// A free place; NULL: there is none, or a process is being copied.
struct oom_taking *oom_free_taking(struct oom_guard *guard);
bool oom_is_taking(const struct oom_guard *guard);
// How far all of it is; what is wanted next begins.
void oom_follow_evidence(struct oom_guard *guard, uint64_t now_ns);
// Cairns that record from then on; `is_end`: they are asked to end.
void oom_reap_attached(struct oom_guard *guard, bool is_end);

#endif
