// SPDX-License-Identifier: Apache-2.0
// The measures by which stacks are ranked, under the names that options and documents use.
#ifndef TOOL_MODEL_MEASURE_H
#define TOOL_MODEL_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/model/profile.h"

enum measure {
    MEASURE_PEAK,
    MEASURE_EXIT,
    MEASURE_ALLOCATED,
    MEASURE_CALLS,
    MEASURE_PEAK_BLOCKS,  // the same moments, counted in blocks
    MEASURE_EXIT_BLOCKS,
    MEASURE_TEMPORARY,  // blocks that their thread freed before its next allocation
    MEASURE_SLACK,      // room beyond what was asked for, of all blocks
    MEASURE_ALIGNMENT,  // what aligned blocks took beyond plain ones of the same sizes
    MEASURE_THEN,       // at a moment that was asked for: --at, --between, --since
    MEASURE_THEN_BLOCKS,
    MEASURE_DAMAGED,  // blocks that were written past (overruns.h); known of processes, not stacks
    MEASURE_COUNT,
};

struct measure_row {
    const char *name;     // as an option has it
    const char *moment;   // "at the peak": what the value is
    const char *order;    // "what they held at the peak": what a list is ranked by
    const char *noun[2];  // of `measured.blocks`: one, several
    bool is_bytes;
    enum measure in_blocks;  // the same in blocks or calls
};

// What is ranked, and the number of blocks or calls that stands beside it.
struct measured {
    int64_t value;  // bytes, blocks or calls
    int64_t blocks;
    int64_t samples;  // behind an estimate
    double variance;  // of the value; 0: it was counted
};

const struct measure_row *measure_about(enum measure measure);
const char *measure_name(enum measure measure);
bool measure_parse(const char *name, enum measure *measure);
// What measure_parse takes.
#define MEASURE_NAMES "peak, exit, allocated, calls, temporary, slack or alignment"

// Wraps instead of overflowing: a damaged file may hold any number.
void measured_add(struct measured *sum, struct measured added);

// Half the width of the value's 95 % interval, 0: it is exact; and whether so few samples are
// behind it that the interval says little.
int64_t measured_interval(struct measured measured);
bool measured_is_unreliable(struct measured measured);

struct measured measure_stack(enum measure measure, const struct stack *stack);
struct measured measure_total(enum measure measure, const struct profile *profile);
// The peak (of unknown blocks), what is left, or what was allocated, of a process without stacks.
struct measured measure_figures(enum measure measure, const struct figures *figures);

// Indexes of the stacks with a value above zero, highest value first, equal ones by id; for
// free(). NULL without memory.
uint32_t *measure_rank(enum measure measure, const struct profile *profile, size_t *count);
// The same with the stacks that have no such value behind the others.
uint32_t *measure_rank_all(enum measure measure, const struct profile *profile, size_t *count);

#endif
