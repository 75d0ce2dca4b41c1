// SPDX-License-Identifier: Apache-2.0
// What every stack held at earlier snapshots, and what was allocated since a mark and still lives.
//
// A recording without snapshots (imported, merged of several processes, or damaged) has an empty
// list, and nothing since any mark. Values are by the number of a stack (struct stack), so that
// they hold for a profile that a filter has narrowed too.
#ifndef TOOL_MODEL_SNAPSHOTS_H
#define TOOL_MODEL_SNAPSHOTS_H

#include "tool/model/profile.h"

struct snapshot {
    enum cairn_snapshot_reason reason;
    char label[CAIRN_LABEL_BYTES];  // "": none
    uint32_t generation;  // of a mark: blocks of it or later were allocated after the mark
    uint64_t at_ns;
    int64_t live_bytes, live_blocks;        // as the process' counters had it; of a heap by name
                                            // as its stacks held it
    uint64_t allocated_bytes, allocations;  // since the start; of a heap by name up to the end of
                                            // an interval of its points, 0 if it has none
    uint64_t missing_values;                // cells whose value is not known, so that it is 0 here
    bool has_values;                        // false: a fork's mark from before it was one, or
                                            // samples without sums (reader.h)
    uint32_t epoch;
    uint32_t heap;  // scope of the heap by name that it was taken for; 0: for malloc's
};

struct live_at {
    int64_t bytes, blocks;
};

struct snapshot_cell;   // what a cell holds now
struct snapshot_value;  // what one held earlier

struct snapshots {
    struct snapshot *list;  // in the order they were taken
    size_t count;
    const struct profile *profile;
    bool is_of_heaps;  // cells are entries of HEAP_STACKS, by their index there
    struct snapshot_cell *cells;
    size_t cell_count;
    uint32_t *holders;  // ids of the cells that hold anything now, or held at any moment
    size_t holder_count;
    struct snapshot_value *values;  // by cell, then by epoch
    size_t value_count;
};

// The profile must outlive it. False without memory.
bool snapshots_build(struct snapshots *snapshots, const struct profile *profile,
                     struct error *error);
// The same of all heaps by name, in a profile of malloc's: for snapshots_cell_live alone.
bool snapshots_build_heaps(struct snapshots *snapshots, const struct profile *profile,
                           struct error *error);
void snapshots_free(struct snapshots *snapshots);

// What every stack held at snapshot `index`: `built_stack_count` entries by number, for free().
// NULL without memory.
struct live_at *snapshots_live(const struct snapshots *snapshots, size_t index);

// What one cell of the profile held then; nothing if it is of no stack.
struct live_at snapshots_cell_live(const struct snapshots *snapshots, size_t index, size_t cell);

// The sums of samples behind that (snapshot_choice.h), and behind what the cell holds now; zeros
// if there were none. False if the cell is of no stack.
bool snapshots_cell_samples(const struct snapshots *snapshots, size_t index, size_t cell,
                            struct cairn_sample_value *sums);
bool snapshots_cell_samples_now(const struct snapshots *snapshots, size_t cell,
                                struct cairn_sample_value *sums);

// Number of the stack of a cell, and marks that had passed when it began; false: it has none.
bool snapshots_cell_origin(const struct snapshots *snapshots, size_t cell, uint32_t *stack_number,
                           uint32_t *generation);

// What every stack holds now of blocks that are of this generation or a later one; for free().
struct live_at *snapshots_since(const struct snapshots *snapshots, uint32_t generation);

// Marks there were; a block's generation is 0 to this number.
uint32_t snapshots_last_generation(const struct snapshots *snapshots);
// What one stack holds now by generation: room for snapshots_last_generation + 1 entries.
void snapshots_survivors(const struct snapshots *snapshots, uint32_t stack_number,
                         struct live_at *survivors);

// "churn", "high", "asked", "mark", "exit".
const char *snapshot_reason_name(enum cairn_snapshot_reason reason);

#endif
