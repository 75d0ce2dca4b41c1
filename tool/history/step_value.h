// SPDX-License-Identifier: Apache-2.0
// A figure of a run, in a series of them.
#ifndef TOOL_HISTORY_STEP_VALUE_H
#define TOOL_HISTORY_STEP_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct step_value {
    uint32_t commit;  // its place in the line; never falls from one value to the next
    int64_t value;
    double deviation;  // of an estimate: what samples say of their own noise; 0: counted
    int64_t bound;     // known within this; 0: exactly
    bool can_vary;     // two runs of the same program may differ
};

#endif
