// SPDX-License-Identifier: Apache-2.0
// Reports about a run of several processes.
#ifndef TOOL_CMDS_REPORT_RUN_H
#define TOOL_CMDS_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tool/base/error.h"
#include "tool/base/json.h"
#include "tool/model/run.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"
#include "tool/render/run_screen.h"
#include "tool/render/terminal.h"

// Puts one process that is open as an object of JSON; `file` is its name in the run.
typedef bool report_put_fn(struct json *json, const char *file, struct opened *opened,
                           const void *context, struct error *error);

// Where the recording of a process is. False: it has none.
bool report_run_path(const struct run *run, const struct run_row *row, char path[PATH_MAX]);

// The screen of `cairn report DIRECTORY`, with which `cairn run` ends too: why the largest process
// is so big, figures, table, its call sites, what to do next.
bool report_run_summary(FILE *out, const struct run *run, const struct view_options *view,
                        bool has_prefix, struct error *error);

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

#endif
