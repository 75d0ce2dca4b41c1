// SPDX-License-Identifier: Apache-2.0
// The measures by which stacks are ranked, under the names that options and documents use.
#ifndef TOOL_MODEL_MEASURE_H
#define TOOL_MODEL_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/model/profile.h"

enum measure { MEASURE_PEAK, MEASURE_EXIT, MEASURE_ALLOCATED, MEASURE_CALLS, MEASURE_COUNT };

// What is ranked, and the number of blocks or calls that stands beside it.
struct measured {
    int64_t value;  // bytes; calls for MEASURE_CALLS
    int64_t blocks;
};

const char *measure_name(enum measure measure);
bool measure_parse(const char *name, enum measure *measure);

// Wraps instead of overflowing: a damaged file may hold any number.
void measured_add(struct measured *sum, struct measured added);

struct measured measure_stack(enum measure measure, const struct stack *stack);
struct measured measure_total(enum measure measure, const struct profile *profile);

// Indexes of the stacks with a value above zero, highest value first, equal ones by id; for
// free(). NULL without memory.
uint32_t *measure_rank(enum measure measure, const struct profile *profile, size_t *count);
// The same with the stacks that have no such value behind the others.
uint32_t *measure_rank_all(enum measure measure, const struct profile *profile, size_t *count);

#endif
