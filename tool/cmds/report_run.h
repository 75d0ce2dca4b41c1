// SPDX-License-Identifier: Apache-2.0
// Reports about a run of several processes.
//
// The summary of a recording or a run as `cairn run` prints it after the end.
#ifndef TOOL_CMDS_REPORT_RUN_H
#define TOOL_CMDS_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tool/base/error.h"
#include "tool/base/json.h"
#include "tool/cmds/symbolize.h"
#include "tool/model/run.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"
#include "tool/render/findings.h"
#include "tool/render/run_screen.h"
#include "tool/render/terminal.h"

// What is printed of one process that is open.
typedef bool report_process_fn(FILE *out, struct opened *opened, const void *context,
                               struct error *error);
// The same as an object of JSON; `file` is its name in the run.
typedef bool report_put_fn(struct json *json, const char *file, struct opened *opened,
                           const void *context, struct error *error);

// Findings of the whole profile, before it is narrowed; the names of their stacks are wanted, for
// findings_settle.
bool report_find_findings(struct opened *opened, struct findings *findings, struct error *error);

// Where the recording of a process is. False: it has none.
bool report_run_path(const struct run *run, const struct run_row *row, char path[PATH_MAX]);

// The screen that `cairn run` ends with: figures, table, the largest process' list, what to do
// next.
bool report_run_summary(FILE *out, const struct run *run, const struct view_options *view,
                        struct error *error);

// `cairn report DIRECTORY`: the same without commands, and with all of the table's large processes.
bool report_run_print(FILE *out, const struct run *run, const struct view_options *view,
                      struct error *error);

// Figures and table alone, in front of a view of all processes.
bool report_run_print_head(FILE *out, const struct run *run, const struct view_options *view,
                           struct error *error);

// The heaps of all processes over time, on one clock.
bool report_run_timeline(FILE *out, const struct run *run, const struct view_options *view,
                         struct error *error);

// Blocks that were written past, process by process.
bool report_run_overruns(FILE *out, const struct run *run, const struct view_options *view,
                         struct error *error);

// Every process, the small ones and those without a recording too.
bool report_run_table(FILE *out, const struct run *run, const struct view_options *view,
                      struct error *error);

// Sums, trust and common peak of all processes, for run_screen_print_facts.
bool report_run_measure(const struct run *run, struct run_screen *screen, struct error *error);

// One object, schema "cairn.run/1"; `put` writes the processes that have a recording.
bool report_run_json(FILE *out, const struct run *run, report_put_fn *put, const void *context,
                     struct error *error);

// The program that was started has the highest peak, so that others are its helpers.
bool report_run_has_main(const struct run *run);

// In one line, above a view: the run, and what the view is of.
bool report_run_context(FILE *out, const struct run *run, const struct view_options *view,
                        const char *what, struct error *error);

#define SUMMARY_TOP_DEFAULT 5

struct summary_options {
    size_t top;                    // places at the peak, 0: all; SUMMARY_TOP_DEFAULT is usual
    enum measure by;               // what the list of places is of
    bool has_all_frames;           // internal frames too
    bool is_plain_number;          // sizes in bytes
    const char *empty_reason;      // why a profile may be empty, if the caller knows; else NULL
    enum symbolize_which symbols;  // names that are kept in it first
};

// The summary of a recording that is open and was just made, starting with "cairn: NAME ended ...".
bool report_summary_print(FILE *out, struct opened *opened, const char *path,
                          const struct summary_options *options, const struct view_options *view,
                          struct error *error);

// The same for a recording that is open, within `cairn report`: no prefix, no commands to go on
// with. `names` are used instead of all those that were found.
bool report_summary_of(FILE *out, struct opened *opened, const char *path, bool has_list,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error);

// One line in its place, above a view; `of_run` says of how many processes it is one, NULL: of
// none.
void report_context_of(FILE *out, const struct opened *opened, const char *path, const char *of_run,
                       const struct view_options *view);

// Names for what the list of places by that measure looks at.
bool report_resolve_places(struct opened *opened, enum measure by, struct error *error);

#endif
