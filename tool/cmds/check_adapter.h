// SPDX-License-Identifier: Apache-2.0
// cairn check --adapter: the tests of a runner or a framework, each recorded under its name.
#ifndef TOOL_CMDS_CHECK_ADAPTER_H
#define TOOL_CMDS_CHECK_ADAPTER_H

#include "tool/check/budgets.h"
#include "tool/cmds/check_series.h"
#include "tool/cmds/record_command.h"
#include "tool/history/adapters.h"

struct check_adapter {
    const struct command_args *args;
    const struct budgets *budgets;
    bool has_guard, has_unreachable;
    uint64_t limit_ns;  // of a test; 0: none
    struct check_series *series;
    struct results *results;
};

// Runs a framework's tests one by one: budgets are of each, and the results too.
bool check_adapter_run_each(const struct check_adapter *check, const struct adapter *adapter,
                            struct error *error);

// Takes a runner's tests out of the run that it made: processes by their arguments.
bool check_adapter_take_run(const struct check_adapter *check, const struct adapter *adapter,
                            const char *path, struct error *error);

#endif
