// SPDX-License-Identifier: Apache-2.0
// The figures of recorded processes as text for Prometheus and whatever scrapes or takes the same
// form: a row a process and family, few labels.
//
// docs/howto/serve.md lists the families; tests/unit/tool/export/metrics_test.c compares.
#ifndef TOOL_EXPORT_METRICS_H
#define TOOL_EXPORT_METRICS_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool/model/figures.h"
#include "tool/model/reader.h"

// One process at one time.
struct metrics_process {
    char name[NAME_MAX];  // any bytes
    pid_t pid;
    const char *cgroup, *container_id, *pod_uid;  // NULL and "": not known
    bool is_running;
    uint64_t rss_bytes;  // 0: not known
    struct figures figures;
    uint64_t own_bytes;  // what cairn takes in it
    uint64_t lost[CAIRN_LOSS_MAX];
    struct picture picture;  // of its resident memory when that was looked at last
    bool has_picture;
};

// A cgroup's memory in parts, as the kernel accounts for it.
enum { METRICS_PARTS_MAX = 16 };
struct metrics_cgroup {
    const char *path;  // any bytes
    uint64_t used_bytes;
    uint64_t limit_bytes;  // UINT64_MAX: there is none
    uint64_t swap_bytes;
    bool has_swap;
    uint64_t kills;
    struct {
        const char *name;
        uint64_t bytes;
    } parts[METRICS_PARTS_MAX];
    size_t part_count;
};

// Takes from a recording what it says; name, pid, whether it runs and its rss are the caller's.
void metrics_read(const struct recording *recording, struct metrics_process *process);

enum metrics_form { METRICS_PROMETHEUS, METRICS_OPEN_METRICS };

// The types that HTTP calls these forms.
const char *metrics_content_type(enum metrics_form form);

// Which of them a client wants that sent this header Accept; NULL: it sent none.
enum metrics_form metrics_form_wanted(const char *accept);

// A row that says which cairn this is; before metrics_print.
void metrics_print_build(FILE *out, enum metrics_form form);

// `has_labels`: rows tell processes apart by name and pid; without, there is one process at most.
// `cgroup`: that the processes are of; NULL: of none, and it has no rows.
void metrics_print(FILE *out, const struct metrics_process *processes, size_t count,
                   bool has_labels, const struct metrics_cgroup *cgroup, enum metrics_form form);

// Name, type and help of each family, for documentation; NULL at the end.
const char *metrics_family(size_t index, const char **type, const char **help);

#endif
