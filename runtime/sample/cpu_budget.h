// SPDX-License-Identifier: Apache-2.0
// Keeps what samples cost within a share of the process' processor time: looks at both every tenth
// of a second, doubles the rate when samples took more than the share, and halves it again, down to
// what was asked for, when they took less than a quarter. Each sample keeps the rate that it was
// taken with, so estimates stay right through all of it.
#ifndef RUNTIME_SAMPLE_CPU_BUDGET_H
#define RUNTIME_SAMPLE_CPU_BUDGET_H

#include <stdint.h>

struct pace_limits {
    uint64_t budget_millionths;  // 0: samples may take any time
    uint64_t rate_bytes;         // the lowest rate
};

void cpu_budget_start(const struct pace_limits *limits);
// Another lowest rate.
void cpu_budget_set_rate(uint64_t rate_bytes);

// A sample took so long, and ended at that time: the rate from now on.
uint64_t cpu_budget_after(uint64_t taken_ns, uint64_t now_ns, uint64_t rate_bytes);

// The decision alone, from what was used since the last look.
uint64_t cpu_budget_rate(const struct pace_limits *limits, uint64_t own_ns, uint64_t cpu_ns,
                         uint64_t rate_bytes);

#endif
