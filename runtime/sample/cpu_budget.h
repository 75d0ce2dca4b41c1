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

// The clock that samples are measured by: with a budget the processor time of the thread, in which
// no other one has a part.
uint64_t cpu_budget_clock_ns(void);

// Returns what a sample costs usually, after one that took so long: one that takes less says so at
// once, one that takes more little by little. The first one of a stack reads rules that later ones
// have, and would make all samples rare in a program that hardly uses the processor.
uint64_t cpu_budget_usual_ns(uint64_t taken_ns);

// A sample took so long by that clock: the rate from now on.
uint64_t cpu_budget_after(uint64_t taken_ns, uint64_t rate_bytes);

// The decision alone, from what was used since the last look.
uint64_t cpu_budget_rate(const struct pace_limits *limits, uint64_t own_ns, uint64_t cpu_ns,
                         uint64_t rate_bytes);

#endif
