// SPDX-License-Identifier: Apache-2.0
// What every stack held at earlier moments, and what was allocated since a mark and still lives.
//
// A recording without moments (imported, merged of several processes, or damaged) has an empty
// list, and nothing since any mark. Values are by the number of a stack (struct stack), so that
// they hold for a profile that a filter has narrowed too.
#ifndef TOOL_MODEL_MOMENTS_H
#define TOOL_MODEL_MOMENTS_H

#include "tool/model/profile.h"

struct moment {
    enum cairn_moment_reason reason;
    char label[CAIRN_LABEL_BYTES];  // "": none
    uint32_t generation;  // of a mark: blocks of it or later were allocated after the mark
    uint64_t at_ns;
    int64_t live_bytes, live_blocks;        // as the process' counters had it
    uint64_t allocated_bytes, allocations;  // since the start
    uint64_t missing_values;                // cells whose value is not known, so that it is 0 here
    bool has_values;                        // false: a fork's mark from before it was one, or
                                            // samples without sums (reader.h)
    uint32_t epoch;
};

struct held {
    int64_t bytes, blocks;
};

struct moment_cell;   // what a cell holds now
struct moment_value;  // what one held earlier

struct moments {
    struct moment *list;  // in the order they were taken
    size_t count;
    const struct profile *profile;
    struct moment_cell *cells;
    struct moment_value *values;  // by cell, then by epoch
    size_t value_count;
};

// The profile must outlive it. False without memory.
bool moments_build(struct moments *moments, const struct profile *profile, struct error *error);
void moments_free(struct moments *moments);

// What every stack held at moment `index`: `built_stack_count` entries by number, for free(). NULL
// without memory.
struct held *moments_held(const struct moments *moments, size_t index);

// What one cell of the profile held then; nothing if it is of no stack.
struct held moments_cell_held(const struct moments *moments, size_t index, size_t cell);

// The sums of samples behind that (moment_estimates.h), and behind what the cell holds now; zeros
// if there were none. False if the cell is of no stack.
bool moments_cell_samples(const struct moments *moments, size_t index, size_t cell,
                          struct cairn_sample_value *sums);
bool moments_cell_samples_now(const struct moments *moments, size_t cell,
                              struct cairn_sample_value *sums);

// Number of the stack of a cell, and marks that had passed when it began; false: it has none.
bool moments_cell_origin(const struct moments *moments, size_t cell, uint32_t *stack_number,
                         uint32_t *generation);

// What every stack holds now of blocks that are of this generation or a later one; for free().
struct held *moments_since(const struct moments *moments, uint32_t generation);

// Marks there were; a block's generation is 0 to this number.
uint32_t moments_last_generation(const struct moments *moments);
// What one stack holds now by generation: room for moments_last_generation + 1 entries.
void moments_survivors(const struct moments *moments, uint32_t stack_number,
                       struct held *survivors);

// "churn", "high", "asked", "mark", "exit".
const char *moment_reason_name(enum cairn_moment_reason reason);

#endif
