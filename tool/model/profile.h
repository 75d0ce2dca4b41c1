// SPDX-License-Identifier: Apache-2.0
// What a recording says: the cells of all threads merged into stacks, with totals, peak, values at
// the end, threads, and how far all of it can be believed.
//
// A value of a stack is the sum over its cells; a single cell may be negative, since frees are
// booked by the thread that frees. The heap's peak is the sum of what every stack held at the
// time of the peak, so that the list of stacks adds up to it.
//
// Blocks that were written past, as guard bands showed (cairn run --guard).
//
// The blocks that a fork found when it began, or that were there before cairn attached. They are
// nobody's calls: a recording counts them in cells that no thread owns, and frees of them in cells
// that refer to those. In a fork they are copies of blocks of another process.
#ifndef TOOL_MODEL_PROFILE_H
#define TOOL_MODEL_PROFILE_H

#include <stdbool.h>

#include "format/guard.h"
#include "tool/base/array.h"
#include "tool/model/decode.h"
#include "tool/model/estimate.h"
#include "tool/model/figures.h"
#include "tool/model/modules.h"
#include "tool/model/pool_candidates.h"
#include "tool/model/reader.h"
#include "tool/model/tree.h"

struct inherited {
    uint64_t blocks, bytes;
    int64_t peak_blocks, peak_bytes;  // of these: still there at the peak ...
    int64_t exit_blocks, exit_bytes;  // ... and at the end of the recording
};

void inherited_add(struct inherited *sum, const struct inherited *added);

// The cell counts such blocks, or frees of them.
bool inherited_is_about(const struct recording *recording, size_t cell,
                        const struct record *record);

// Of a whole recording, without its stacks and without what was there at the peak.
struct inherited inherited_of(const struct recording *recording);

struct overrun {
    struct cairn_overrun entry;
    uint32_t node;        // of the stack that allocated the block; TREE_ROOT: not known
    uint32_t found_node;  // of the stack that freed it, or that called realloc
};

struct overruns {
    struct cairn_guard guard;  // zeros: no block had bands
    ARRAY(struct overrun) list;
};

// What is not complete is left out. False without memory.
bool overruns_read(struct overruns *overruns, struct recording *recording, struct decoder *decoder);
void overruns_free(struct overruns *overruns);

// Offset from the block's start of the first changed byte before it, and behind it.
int64_t overrun_before(const struct overrun *overrun);
int64_t overrun_behind(const struct overrun *overrun);

// A sample of blocks (cairn_cell_rare.watched), and how many of them were short-lived.
struct watched_blocks {
    uint64_t blocks, short_lived;
};

// What few recordings know of their stacks: of samples, of forks and attaching, of mappings.
struct stack_more {
    struct inherited inherited;  // not among the allocations, but among all else
    struct estimate estimates[ESTIMATED_COUNT];
    uint32_t mapping_kinds;  // of mappings: bits by enum cairn_mapping_kind
    int64_t reserved_bytes,
        reserved_ranges;  // of mappings without access; nothing else counts them
};

// Of hundreds of thousands of stacks, each is walked over many times: what is not known of them
// takes no room here.
struct stack {
    uint64_t id;        // of its frames; the same in every run and thread
    uint32_t node;      // innermost frame in the tree; TREE_ROOT: the stack was not recorded
    uint32_t cut;       // 0, or enum cairn_cut, as places have it (cut_kind)
    uint32_t number;    // as it was built, whatever a filter took away (snapshots.h, shape.h)
    bool is_estimated;  // some number is an estimate
    uint16_t heap;      // of several heaps in one list (all_heaps.h); 0: the profile's
    uint64_t allocations, frees;
    uint64_t temporary;  // blocks that their thread freed before its next allocation
    struct watched_blocks watched;
    uint64_t slack_bytes;  // room of all its blocks beyond what was asked for
    uint64_t waste_bytes;  // what aligned ones took beyond plain blocks of the same sizes
    uint64_t allocated_bytes, freed_bytes;
    int64_t peak_bytes, peak_blocks;
    int64_t exit_bytes, exit_blocks;  // at the end of the recording, or now if it still runs
    int64_t at_bytes, at_blocks;  // at the snapshot that was asked for (query/snapshot_options.h)
    struct stack_more *more;      // of whoever made the stack; NULL: all of it is zero
};

// Never NULL.
const struct stack_more *stack_more(const struct stack *stack);

// Stacks that have all of it, in one block, for free(). NULL without memory.
struct stack *stack_list_make(size_t count);
// With what it has more, if `to` has room for that.
void stack_copy(struct stack *to, const struct stack *from);
// No values, but what the stack is.
void stack_clear(struct stack *stack);

// Room for more, which stays where it is.
struct stack_pool {
    ARRAY(struct stack_more *) chunks;
    size_t used;  // of the last chunk
};

// Gives the stack room for more, if it has none. False without memory.
bool stack_pool_give(struct stack_pool *pool, struct stack *stack);
void stack_pool_free(struct stack_pool *pool);

struct profile_thread {
    char name[16];
    uint32_t tid;
    uint32_t slot;          // of its cells; threads that never lived together may share one
    uint32_t folded_count;  // further threads in this entry
    bool is_ended;
    uint64_t start_ns, end_ns;  // end_ns 0: unknown
    uint64_t allocations, allocated_bytes, failed;
    int64_t exit_bytes, peak_bytes;                // of the blocks it allocated
    uint32_t sharing_count;                        // threads of its slot
    struct estimate exit_estimate, peak_estimate;  // of the slot, not of the share
    // Of threads that had a slot one after the other it may be known what they held together, and
    // not what one of them did: then exit_bytes and peak_bytes are a share by rule of thumb, to be
    // shown to nobody (threads_rows).
    bool is_shared;
    uint32_t account;  // one number for those that share
    int64_t account_exit_bytes, account_peak_bytes;
};

// Sums over all stacks or threads. Of a sampled recording allocations and allocated_bytes are those
// of the threads, which are exact, and not quite the sum of the stacks' estimates.
struct profile_totals {
    uint64_t allocations, frees, allocated_bytes, freed_bytes, failed;
    uint64_t temporary, slack_bytes, waste_bytes;
    struct watched_blocks watched;
};

struct profile_peak {
    int64_t bytes, blocks;
    uint64_t at_ns;
    uint64_t from_ns;      // before it: as far as is known it was as high then; 0: it was not
    uint64_t error_bytes;  // 0: exact
    bool is_at_end;        // the heap never was larger than at the end of the recording
};

// Where the blocks of a foreign cell were freed, if that was recorded (--free-stacks).
struct freed_at {
    uint32_t cell, node;
};

// The id of a stack that was added to another one, by the number of that (join.h).
struct joined_id {
    uint32_t number;
    uint64_t id;
};

// Of mappings (mapped.h).
struct mapped_figures {
    uint64_t calls, mapped_bytes, unmapped_bytes;
    int64_t peak_bytes, peak_ranges;  // at the peak of all kinds but RESERVED
    int64_t exit_bytes, exit_ranges;  // at the end, or now
};

struct heap_part {
    uint32_t node;    // of the tree: the stack
    uint32_t number;  // of the entry in HEAP_STACKS
    bool is_shown;    // of the heap that takes the place of malloc's
    struct cairn_heap_stack entry;
};

struct mapped {
    bool is_recorded;
    struct mapped_figures kinds[CAIRN_MAPPING_KINDS];
    struct mapped_figures all;  // but RESERVED
    uint64_t peak_ns;
    uint64_t lost;  // changes that could not be noted
    struct stack *stacks;
    size_t stack_count;
};

// What nothing led to when processes ended (format/reachability.h).
struct reachability {
    size_t known_count, unknown_count;  // processes; none: that was not asked for
    struct cairn_reachability sums;     // `reason` is that of the first that is not known
};

struct shape_log;
struct heap_names;  // heaps.h

struct profile {
    struct recording *recording;
    struct module_map modules;
    struct places places;
    struct tree tree;
    struct stack *stacks;
    struct stack_pool more;  // of the stacks
    size_t stack_count;
    size_t built_stack_count;  // before a filter took some away
    uint32_t *stack_of_cell;   // index + 1 into the stacks as they were built; 0: cell without use,
                               // or not of what a filter keeps
    uint32_t *region_of_cell;  // scope id, 0: none
    double *peak_over;  // by stack as built: what a sampled peak is above the heap's level, by the
                        // variance of what the stack held then; NULL: it is not (sampled_peak.h)
    size_t cell_count;
    uint64_t inherited_other_blocks, inherited_other_bytes;  // of CAIRN_CELL_OTHER
    ARRAY(struct freed_at) freed_at;
    ARRAY(struct joined_id) joined;  // by number
    uint32_t *joined_numbers;        // by number as built, plus 1; NULL: none was joined
    struct overruns overruns;        // of a sum: how many, and no list
    struct reachability reachability;
    struct profile_thread *threads;
    size_t thread_count;
    struct profile_totals totals;
    struct inherited inherited;  // over all stacks
    bool has_copies_apart;  // a sum: what forks still held of it is in no peak and no exit value
    struct profile_peak peak;
    int64_t exit_bytes, exit_blocks;
    int64_t at_bytes, at_blocks;  // what all stacks held then; of a difference: what grew
    struct estimate estimates[ESTIMATED_COUNT];  // over all stacks
    struct cairn_sampling sampling;              // zeros: every allocation was recorded alike
    struct figures figures;                // the same without stacks, and what a fork inherited
    uint64_t incomplete[CAIRN_CUT_LIMIT];  // stacks by enum cairn_cut
    struct mapped mapped;                  // the program's own mappings
    const struct pool_candidates *pool_candidates;  // NULL: not looked for (query/log_views.h)
    const struct shape_log *log;                    // an event log that tells more; NULL: none
    bool is_of_lost;               // what is left is lost, with what only lost blocks lead to
    bool is_of_mappings;           // they take the place of the heap (profile_show_mapped)
    struct heap_part *heap_parts;  // of allocators by name (heaps.h)
    size_t heap_part_count;
    uint32_t *heap_cell_of;               // by cell: index + 1 in heap_cells. NULL: malloc's count
    struct cairn_heap_stack *heap_cells;  // sums; their peaks are those of the heap's own peak
    const char *heap;  // the one that takes the place of malloc's (profile_show_heap); NULL: none
    uint32_t heap_scope;            // its scope
    struct heap_names *heap_names;  // of stacks of all heaps; NULL: they are of one
};

// Builds all of it; fails only without memory. The recording must outlive the profile.
bool profile_build(struct recording *recording, struct profile *profile, struct error *error);
// No more than tree, places and modules, which are the same: for who wants to know which code there
// is.
bool profile_build_places(struct recording *recording, struct profile *profile,
                          struct error *error);
void profile_free(struct profile *profile);

// What one cell adds to its stack.
struct cell_values {
    uint64_t calls, frees, allocated_bytes, freed_bytes;
    uint64_t temporary, slack_bytes, waste_bytes;
    struct watched_blocks watched;
    struct inherited inherited;
    int64_t peak_bytes, peak_blocks;
    int64_t exit_bytes, exit_blocks;
    bool is_estimated;  // some number is an estimate
    struct estimate estimates[ESTIMATED_COUNT];
    struct estimate freed_estimate;  // of frees and freed_bytes
};
// Without what was still there of inherited blocks, which takes the cell's record too.
// False if the cell does not exist or was never used.
bool profile_cell(const struct profile *profile, size_t cell, struct cell_values *values);
// Its cells may have values that a stack needs more room for.
bool profile_has_more(const struct profile *profile);

// The index of the stack that a cell is of; the count of stacks: none is known.
size_t profile_stack_of(const struct profile *profile, uint32_t cell);
void watched_add(struct watched_blocks *sum, struct watched_blocks added);
// What the stack has no room for is left out.
void stack_add(struct stack *stack, const struct cell_values *values);
// A stack's own values, to add them to another one.
struct cell_values stack_values(const struct stack *stack);

// The ids that stacks ending in these nodes have, by node; for free(). NULL without memory.
uint64_t *profile_node_ids(const struct profile *profile);
// Gives stacks of the tree their ids, and says where they were cut. False without memory.
bool profile_name_stacks(const struct profile *profile, struct stack *stacks, size_t stack_count);

// Index of each stack by its number, plus 1; 0: a filter took it away. For free(). NULL without
// memory.
uint32_t *profile_stack_indexes(const struct profile *profile);

// Blocks that were there before cairn attached are in no figure: they were not counted.
bool profile_lacks_older(const struct profile *profile);

// Nothing was allocated, nothing inherited.
bool profile_is_empty(const struct profile *profile);

// False: of an import that has no frees, so that neither peak nor what is left is known.
bool profile_has_frees(const struct profile *profile);

// False: of an import that says only what was live at some time, so that neither calls nor
// allocated bytes are known.
bool profile_has_calls(const struct profile *profile);

// False: of an import that says how many bytes a stack holds, not in how many blocks.
bool profile_has_blocks(const struct profile *profile);

// Several recordings were added up: of single cells nothing is known.
bool profile_is_sum(const struct profile *profile);

// True if every event was counted: nothing lost that changes a number, nothing damaged. The peak
// has an error of its own.
bool profile_is_exact(const struct profile *profile);
// Stacks that do not reach their outermost frame.
uint64_t profile_incomplete_count(const struct profile *profile);
// The recording says how its process ended.
bool profile_has_ended(const struct profile *profile);

#endif
