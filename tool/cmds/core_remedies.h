// SPDX-License-Identifier: Apache-2.0
// `cairn report PID|CORE --view remedies`: what would give memory back, how much, what it costs and
// the line that does it (tool/heap/remedies.h).
#ifndef TOOL_CMDS_CORE_REMEDIES_H
#define TOOL_CMDS_CORE_REMEDIES_H

#include "tool/cmds/core_remedies_words.h"
#include "tool/cmds/core_sets.h"
#include "tool/query/heap_views.h"
#include "tool/render/terminal.h"
#include "tool/watch/rss_parts.h"

struct request;

struct remedies_wish {
    bool has_limit;  // a process whose heap is larger is not stopped, but read while it goes on
    bool may_stop;   // false: no process is
};

// False with an error if there is nothing to look at.
bool core_remedies_report(const char *word, const struct request *request,
                          const struct remedies_wish *wish, struct error *error);

// Rows, as `request` has them, of a process that has ended: `facts` are of the moment at which it
// was copied.
bool core_remedies_rows(struct core_subject *subject, const struct remedy_facts *facts,
                        const struct request *request, struct error *error);

// Fills in what a process' resident memory consists of: `resident` is of it.
void core_remedies_facts(pid_t pid, bool is_recorded, const struct rss_parts *resident,
                         struct remedy_facts *facts);

// Reads the heap of a process that goes on. False: none of glibc's can be read.
bool core_remedies_read_running(pid_t pid, const struct rss_parts *resident,
                                struct remedy_facts *facts);

// Reads the heap of what was looked at; `heap`: its chunks, and another allocator's, if that is
// what it has. False without memory.
bool core_remedies_read_heap(const struct heap_look *look, const struct glibc_heap *heap,
                             struct remedy_facts *facts);

#endif
