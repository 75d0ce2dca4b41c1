// SPDX-License-Identifier: Apache-2.0
// The summary of a recording, as `cairn run`, `attach` and `report` print it.
#ifndef TOOL_CMDS_REPORT_SUMMARY_H
#define TOOL_CMDS_REPORT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tool/base/error.h"
#include "tool/cmds/symbolize.h"
#include "tool/query/merged.h"
#include "tool/render/findings.h"
#include "tool/render/terminal.h"

// Findings of the whole profile, before it is narrowed; the names of their stacks are wanted, for
// findings_settle.
bool report_find_findings(struct opened *opened, struct findings *findings, struct error *error);

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

// The same within `cairn report`, without a prefix. `names` are used instead of all those that were
// found. `has_list` is false above a view: there are no call sites then, and no command to go on.
bool report_summary_of(FILE *out, struct opened *opened, const char *path, bool has_list,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error);

// One line in its place, above a view; `of_run` says of how many processes it is one, NULL: of
// none.
void report_context_of(FILE *out, const struct opened *opened, const char *path, const char *of_run,
                       const struct view_options *view);

// Names for its first sentences ...
bool report_want_way(struct opened *opened, struct error *error);
// ... and for what the list of places by that measure looks at.
bool report_resolve_places(struct opened *opened, enum measure by, struct error *error);

#endif
