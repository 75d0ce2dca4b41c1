// SPDX-License-Identifier: Apache-2.0
// What the blocks of a stack were like - their sizes, how they were reallocated, how old they
// became
// - and which thread freed whose blocks. What was not recorded is empty.
#ifndef TOOL_MODEL_SHAPE_H
#define TOOL_MODEL_SHAPE_H

#include "tool/model/measure.h"
#include "tool/model/reader.h"

#define SHAPE_SIZE_BUCKETS 65  // by the number of a size's bits: bucket b has 2^(b-1) to 2^b - 1
#define SHAPE_SIZES_MAX 64     // distinct sizes that are kept

struct shape_size {
    uint64_t size, count;
    bool is_at_least;  // some more are only in the buckets
};

// Sizes of all blocks of a stack, as requested.
struct shape_sizes {
    struct shape_size list[SHAPE_SIZES_MAX];  // the most frequent first
    size_t count;
    uint64_t buckets[SHAPE_SIZE_BUCKETS];  // all blocks of known size, those of the list included
    uint64_t unknown;                      // blocks whose size was not noted one by one
};

// Of an entry of a heap by name, by its index in profile.heap_parts.
void shape_part_sizes(const struct profile *profile, size_t index, struct shape_sizes *sizes);

// The same of samples: what they estimate, by the number of a size's bits.
struct shape_sampled_size {
    uint32_t least, most;  // of the samples
    struct measured calls;
};
#define SHAPE_SAMPLED_SIZES 33

struct shape_reallocs {
    uint64_t calls, in_place, grown, copied_bytes;  // moved: calls - in_place
};

// Blocks that were asked for with an alignment beyond what malloc gives anyway: bucket b, of
// alignments that are a power of two, those of 2^(b+5); the last one also larger ones.
struct shape_aligned {
    uint64_t calls[CAIRN_ALIGN_BUCKETS], all_calls;
    uint64_t slack_bytes, waste_bytes;  // as in struct stack, of these blocks alone
    uint64_t most;                      // the largest alignment
    uint64_t usual;                     // the one with the most calls, of several the largest
    uint64_t reach_bytes;  // glibc: what such a call needs in one piece beyond the block, for the
                           // largest; the rest of it becomes free chunks again
    bool is_waste_known;   // by glibc's chunks
};

// Blocks that were freed, by their age (--ages); bucket b: 2^(b-1) to 2^b - 1.
struct shape_ages {
    uint64_t calls[CAIRN_AGE_BUCKETS];  // allocations of the thread in between
    uint64_t ms[CAIRN_AGE_BUCKETS];
};

// The same of an event log, by cell (query/log_ages.h): in place of what was recorded.
struct shape_log {
    struct shape_ages *cells;
    size_t count;
    uint64_t known_count, unknown_count;  // frees; of the latter the log does not have the birth
    char note[320];                       // what of the blocks it tells
};

// The cells of each stack, by its number; of a heap by name its entries, by their index in
// profile.heap_parts: of these sizes and ages are known alone.
struct shape {
    const struct profile *profile;
    uint32_t *first;  // by number: where its cells begin in `cells`; one more at the end
    uint32_t *cells;
};

// The profile must outlive it. False without memory.
bool shape_build(struct shape *shape, const struct profile *profile, struct error *error);
void shape_free(struct shape *shape);

void shape_sizes(const struct shape *shape, uint32_t stack_number, struct shape_sizes *sizes);
// In ascending order, none of them without samples; how many there are. `other_calls` becomes the
// estimated number of those whose sizes were not kept.
size_t shape_sampled_sizes(const struct shape *shape, uint32_t stack_number,
                           struct shape_sampled_size sizes[SHAPE_SAMPLED_SIZES],
                           int64_t *other_calls);
void shape_reallocs(const struct shape *shape, uint32_t stack_number,
                    struct shape_reallocs *reallocs);
void shape_aligned(const struct shape *shape, uint32_t stack_number, struct shape_aligned *aligned);
uint64_t shape_alignment(size_t bucket);
// False: ages were not recorded for it.
bool shape_ages(const struct shape *shape, uint32_t stack_number, struct shape_ages *ages);

// Of an entry of a heap by name.
bool shape_part_ages(const struct profile *profile, size_t index, struct shape_ages *ages);

// Blocks that threads of slot `owner` allocated and threads of slot `freer` freed. Threads that
// handed a slot on share it (struct profile_thread).
struct shape_freed {
    uint16_t owner, freer;
    uint64_t frees, bytes;
    struct estimate estimate;  // of samples, how sure both are
};
// All pairs with a free, by owner and freer; for free(). None of a heap by name: who freed its
// blocks is not recorded. NULL without memory.
struct shape_freed *shape_freed_by(const struct profile *profile, size_t *count);

// With --free-stacks: which stacks freed the blocks of which, by numbers of stacks.
struct shape_free_stack {
    uint32_t allocating;  // number of the stack
    uint32_t node;        // of the stack that freed, in the profile's tree
    uint64_t frees, bytes;
};
// By allocating stack, the most bytes of each first; for free(). NULL without memory.
struct shape_free_stack *shape_free_stacks(const struct profile *profile, size_t *count);
// The part of such a list that is about one stack.
const struct shape_free_stack *shape_free_stacks_of(const struct shape_free_stack *list,
                                                    size_t count, uint32_t stack_number,
                                                    size_t *own_count);

// What glibc takes for the live blocks beyond what was asked for: rounding and headers.
//
// Of each stack the rounding of all its blocks together is known, not which of them are live: its
// live blocks are taken for average ones. With one size by stack, which most have, that is exact.

uint64_t slack_of_live(const struct recording *recording);

// By how many milliseconds an age (--ages) may be wrong, up or down: the clock moves now and then,
// and late where the tool waits for a processor. UINT64_MAX: not known.
uint64_t shape_ages_error_ms(const struct recording *recording);

#endif
