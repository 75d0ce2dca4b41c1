// SPDX-License-Identifier: Apache-2.0
// Budgets of `cairn check` for what is in the blocks of a running process or of a core dump: how
// much of it is of no use, and how much nothing leads to. Recordings do not have it.
#ifndef TOOL_CMDS_CHECK_MEMORY_H
#define TOOL_CMDS_CHECK_MEMORY_H

#include "tool/check/results.h"
#include "tool/cmds/core_waste.h"
#include "tool/query/arguments.h"

// Negative: there is no such budget.
struct memory_budgets {
    double waste;    // a share of the blocks' bytes
    int64_t lost;    // bytes
    int64_t wasted;  // bytes that were found to be of no use; -1: not looked at, or an estimate
    struct waste_wish wish;
};

// From the options. False with an error.
bool memory_budgets_read(const struct command_args *args, struct memory_budgets *budgets,
                         struct error *error);

static inline bool memory_budgets_are_any(const struct memory_budgets *budgets) {
    return budgets->waste >= 0 || budgets->lost >= 0;
}

// Adds a result for each. `word`: a process or a core dump; a recording (NULL: the newest here) has
// only what was lost. False with an error.
bool memory_budgets_evaluate(struct memory_budgets *budgets, const char *word,
                             struct results *results, struct error *error);

#endif
