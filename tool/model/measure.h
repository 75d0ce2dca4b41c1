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
    MEASURE_PEAK_BLOCKS,  // the same times, counted in blocks
    MEASURE_EXIT_BLOCKS,
    MEASURE_TEMPORARY,  // blocks that their thread freed before its next allocation
    MEASURE_SHORT,      // short-lived blocks, of a sample (cairn_cell_rare.watched)
    MEASURE_SLACK,      // room beyond what was asked for, of all blocks
    MEASURE_ALIGNMENT,  // what aligned blocks took beyond plain ones of the same sizes
    MEASURE_AT,         // at a moment that was asked for: --at, --between, --since
    MEASURE_AT_BLOCKS,
    MEASURE_OVERRUNS,  // blocks that were written past (profile.h); known of processes, not stacks
    MEASURE_COUNT,
};

struct measure_row {
    const char *name;      // as an option has it
    const char *snapshot;  // "at the peak": what the value is
    const char *order;     // "what they held at the peak": what a list is ranked by
    const char *noun[2];   // of `measured.blocks`: one, several
    bool is_bytes;
    enum measure in_blocks;  // the same in blocks or calls
};

// What is ranked, and the number of blocks or calls that stands beside it.
struct measured {
    int64_t value;  // bytes, blocks or calls
    int64_t blocks;
    bool is_in_blocks;         // the value is
    struct estimate estimate;  // how sure it is; zeros: it was counted
};

const struct measure_row *measure_about(enum measure measure);
const char *measure_name(enum measure measure);
bool measure_parse(const char *name, enum measure *measure);
// What measure_parse takes.
#define MEASURE_NAMES "peak, exit, allocated, calls, short-lived, temporary, slack or alignment"

// Wraps instead of overflowing: a damaged file may hold any number.
void measured_add(struct measured *sum, struct measured added);

// Of bytes, or of blocks or calls.
struct measured measured_bytes(int64_t bytes, const struct estimate *estimate);
struct measured measured_blocks(int64_t blocks, const struct estimate *estimate);
// Bytes whose interval and samples are all that is known.
struct measured measured_of_interval(int64_t bytes, int64_t interval, int64_t samples);

// Half the width of the value's 95 % interval, 0: it is exact; the effective samples behind it
// (estimate.h); and whether these are so few that the interval says little.
int64_t measured_interval(struct measured measured);
int64_t measured_samples(struct measured measured);
// The lower end of the interval: not below zero, nor below what was seen for certain.
int64_t measured_least(struct measured measured);
// The upper end: not above what was counted. Estimates are right on average because some of them
// are too high: the value itself may lie above it.
int64_t measured_most(struct measured measured);
// The value as screens print it: not above that end, nor below what was counted.
int64_t measured_shown(struct measured measured);
bool measured_is_unreliable(struct measured measured);

// False: nothing says how many blocks were temporary, as in most files of other profilers, or
// short-lived, or what was ever freed.
bool measure_is_known(enum measure measure, const struct profile *profile);

struct measured measure_stack(enum measure measure, const struct stack *stack);
// Its value alone.
int64_t measure_value(enum measure measure, const struct stack *stack);
struct measured measure_total(enum measure measure, const struct profile *profile);
// The peak (of unknown blocks), what is left, or what was allocated, of a process without stacks.
struct measured measure_figures(enum measure measure, const struct figures *figures);

// Indexes of the stacks with a value above zero, highest value first, equal ones by id; for
// free(). NULL without memory.
uint32_t *measure_rank(enum measure measure, const struct profile *profile, size_t *count);
// The same, of the `most` highest; 0: all.
uint32_t *measure_rank_most(enum measure measure, const struct profile *profile, size_t most,
                            size_t *count);
// The same with the stacks that have no such value behind the others.
uint32_t *measure_rank_all(enum measure measure, const struct profile *profile, size_t *count);
uint32_t *measure_rank_all_most(enum measure measure, const struct profile *profile, size_t most,
                                size_t *count);

// What is to be put in the order of its keys; `index` is the caller's.
struct measure_key {
    uint64_t first, second;
    uint32_t index;
};
// Sorts by `first` and, where that is equal, by `second`, ascending; equal ones keep their order.
// `spare` has as much room. One of the two, which has the result.
struct measure_key *measure_keys_sort(struct measure_key *keys, struct measure_key *spare,
                                      size_t count);
// An ascending key for the highest value first.
static inline uint64_t measure_key_of(int64_t value) {
    return (uint64_t)INT64_MAX - (uint64_t)value;
}

#endif
