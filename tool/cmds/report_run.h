// SPDX-License-Identifier: Apache-2.0
// Reports about a run of several processes.
#ifndef TOOL_CMDS_REPORT_RUN_H
#define TOOL_CMDS_REPORT_RUN_H

#include <stdio.h>

#include "tool/base/error.h"
#include "tool/cmds/opened.h"
#include "tool/cmds/subject.h"
#include "tool/model/run.h"
#include "tool/render/options.h"

// What a view prints of one process that is open.
typedef bool report_process_fn(FILE *out, struct opened *opened, const void *context,
                               struct error *error);

// The screen that `cairn run` ends with: figures, table, the largest process' list, what to do
// next.
bool report_run_summary(FILE *out, const struct run *run, const struct view_options *view,
                        struct error *error);

// `cairn report DIRECTORY`: the same without commands, and with all of the table's large processes;
// `print` (NULL: the list of places) is applied to the process with the most of view->by, and gets
// `context`.
bool report_run_print(FILE *out, const struct run *run, const struct view_options *view,
                      report_process_fn *print, const void *context, struct error *error);

// Goes from a run into the process with the most of `by`; a single recording stays what it is.
bool report_run_enter_largest(struct subject *subject, enum measure by, struct error *error);

// Every process, the small ones and those without a recording too.
bool report_run_table(FILE *out, const struct run *run, const struct view_options *view,
                      struct error *error);

// One object, schema "cairn.run/1".
bool report_run_json(FILE *out, const struct run *run, const struct view_options *view,
                     struct error *error);

#endif
