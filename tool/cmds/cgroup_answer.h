// SPDX-License-Identifier: Apache-2.0
// `cairn report --cgroup PATH`: what the memory of a control group is, in parts that add up to what
// the kernel says it uses; its processes, and their heaps by stack where they are recorded.
#ifndef TOOL_CMDS_CGROUP_ANSWER_H
#define TOOL_CMDS_CGROUP_ANSWER_H

#include "tool/proc/cgroup_memory.h"
#include "tool/query/arguments.h"
#include "tool/query/merged.h"
#include "tool/render/site.h"
#include "tool/watch/cgroup_processes.h"

enum { CGROUP_SITES = 3, CGROUP_HEAPS = 8, CGROUP_SENTENCE_BYTES = 256 };

// The heap of a process that is recorded.
struct cgroup_heap {
    const struct cgroup_process *process;
    struct opened opened;
    struct frame_names names;
    struct site_list sites;
    int64_t live_bytes, live_blocks;
    bool is_sampled;
};

struct cgroup_answer {
    struct cgroup cgroup;
    struct cgroup_parts parts;
    struct cgroup_processes processes;
    uint64_t unread_bytes;  // anonymous memory of no process that was read
    // Parts of the kernel's memory where version 1 tells one sum: what its processes have, and
    // the rest.
    uint64_t kernel_tables_bytes, kernel_stacks_bytes, kernel_rest_bytes;
    uint64_t elsewhere_bytes;  // of processes beyond it: charged to another group, or counted late
    struct cgroup_heap *heaps[CGROUP_HEAPS];  // the most live first
    size_t heap_count;
    size_t heaps_left_out;  // recorded processes beyond those
    char sentence[CGROUP_SENTENCE_BYTES];
};

// The status to end with; what went wrong is printed.
int cgroup_report(const struct command_args *args);

// The two forms.
void cgroup_screen_print(const struct cgroup_answer *answer);
void cgroup_json_print(const struct cgroup_answer *answer);

#endif
