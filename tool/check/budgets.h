// SPDX-License-Identifier: Apache-2.0
// What a process may take: limits by program name, from options or a file of budgets
// (docs/howto/ci.md), and what a run took of each.
#ifndef TOOL_CHECK_BUDGETS_H
#define TOOL_CHECK_BUDGETS_H

#include "tool/base/toml.h"
#include "tool/check/results.h"
#include "tool/model/run_row.h"
#include "tool/query/arguments.h"

// A limit of one kind for programs of a name. A new kind is a row of the table in budgets.c.
struct budget {
    char pattern[RUN_TEXT_MAX];  // as fnmatch has them: of a program's name, or of a region
    bool is_region;              // what was allocated in the regions of that name
    enum measure measure;
    int64_t limit;         // bytes or calls; unused with a baseline or a share
    double share;          // of the process' calls; negative: `limit` counts
    const char *baseline;  // NULL: none; belongs to the caller
    double tolerance;      // a share more than the baseline
};

struct budgets {
    ARRAY(struct budget) list;
    struct toml toml;  // texts of the file
};

// From --max-peak and so on; from a file. False with an error.
bool budgets_read_options(const struct command_args *args, struct budgets *budgets,
                          struct error *error);
bool budgets_read_file(const char *path, struct budgets *budgets, struct error *error);
void budgets_free(struct budgets *budgets);

// "20%": a share of 1. False: it is none.
bool budgets_parse_share(const char *text, double *share);

// Compares what a recording or run took with the budgets: one result each, the worst process of
// those it is meant for. `process` narrows a run to one of them, may be NULL. False with an error.
bool budgets_evaluate(const struct budgets *budgets, const char *path, const char *process,
                      const struct command_args *args, struct results *results,
                      struct error *error);

#endif
