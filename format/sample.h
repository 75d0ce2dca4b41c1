// SPDX-License-Identifier: Apache-2.0
// What a recording holds beyond format.h when allocations are sampled instead of all recorded, or
// some sizes are recorded without their stacks.
//
// A sampled block of k bytes was chosen with a probability p that its size and the rate T of that
// snapshot gave: p = 1 - exp(-k/T) below T, 1 from T on. It stands for 1/p blocks and k/p bytes. In
// a recording with samples the cells count those weights: calls and frees are numbers of samples,
// the bytes are k/p each. What else an estimate needs stands beside each cell, in SAMPLE_CELLS.
// Nothing has to be scaled by a reader.
#ifndef CAIRN_SAMPLE_H
#define CAIRN_SAMPLE_H

#include <stdint.h>

#include "format/format.h"

// Further section kinds.
enum {
    CAIRN_SECTION_SAMPLING = 22,       // struct cairn_sampling, one
    CAIRN_SECTION_SAMPLE_CELLS = 23,   // struct cairn_sample_entry, index = cell id
    CAIRN_SECTION_SAMPLE_VALUES = 25,  // struct cairn_sample_value, index = that in VALUES
};

// Further cuts (enum cairn_cut): the pseudo frame of blocks that got no stack for their size.
enum {
    CAIRN_CUT_SMALL = 12,  // below --min-size
    CAIRN_CUT_LARGE = 13,  // above --max-size
};

// Counts are in units of 2^-16.
#define CAIRN_SAMPLE_ONE 65536

struct cairn_sampling {
    uint64_t is_on;                  // (atomic) allocations are being sampled
    uint64_t start_ns;               // when that began, since the recording's start
    uint64_t rate_bytes;             // T as it was asked for
    uint64_t rate_now_bytes;         // (atomic) T as it was adapted
    uint64_t rate_most_bytes;        // (atomic) the highest T in use so far
    uint64_t seed;                   // of the random numbers
    uint64_t max_samples;            // live at a time; beyond, T is doubled and samples are dropped
    uint64_t live_samples;           // (atomic)
    uint64_t thinned_count;          // (atomic) times that T was doubled for max_samples
    uint64_t slowed_count;           // (atomic) times that T was doubled for the processor's sake
    uint64_t cpu_budget_millionths;  // share of processor time that samples may take; 0: any
    uint64_t min_bytes, max_bytes;   // stacks are taken of sizes from..to; 0: no such bound
    uint64_t
        wanted_bytes;  // (atomic) written by the tool: T from the next sample on; 0: rate_bytes
    uint64_t found_blocks, found_bytes;  // counted: what was there before an attach; 0: not known
};

// A cell holds live: calls - frees samples, that is so many blocks + extra_calls - extra_frees;
// their variance is that of allocations minus that of frees. Thinning books its changes on the side
// of the frees, which therefore may sink.
struct cairn_sample_cell {
    uint64_t extra_calls;  // sum of 1/p - 1 over the samples, in units of 2^-16
    uint64_t extra_frees;  // the same of those freed; both wrap
    double allocated_variance, freed_variance;  // of bytes: sum of k^2 (1-p) / p^2
    double calls_variance, frees_variance;      // of counts: sum of (1-p) / p^2
    uint64_t peak_extra;                        // at the last peak, like cairn_cell.peak_*
    float peak_bytes_variance, peak_blocks_variance;
};

// Blocks that a thread freed, of any thread: an estimate if its allocations are sampled.
static inline uint64_t cairn_thread_frees(const struct cairn_thread *thread) {
    if (!thread->is_sampled) return thread->frees;
    int64_t held = thread->estimated_blocks / CAIRN_SAMPLE_ONE;
    int64_t frees = (int64_t)thread->allocations - held;
    return frees > 0 ? (uint64_t)frees : 0;
}

// What was behind a value of VALUES: the same sums, as they stood then. Samples that came or went
// between two snapshots are what the sums differ by.
struct cairn_sample_value {
    uint64_t calls, frees;  // samples, as in the cell
    uint64_t extra;         // extra_calls - extra_frees
    double allocated_variance, freed_variance, calls_variance, frees_variance;
};

// The allocations of a cell whose sizes have the same number of bits, as samples estimate them.
struct cairn_sample_size {
    uint32_t least_bytes,
        most_bytes;    // of the samples; what is larger than 2^32 - 1 counts as that
    uint64_t calls;    // sum of 1/p, in units of 2^-16
    uint32_t samples;  // 0: the place is free
    float variance;    // of the number of calls
};

// The first sizes that a cell met have a place; calls of others are only in its sums.
#define CAIRN_SAMPLE_SIZES 4
struct cairn_sample_entry {
    struct cairn_sample_cell sums;
    struct cairn_sample_size sizes[CAIRN_SAMPLE_SIZES];
};

// Where the process keeps the samples that live, for who looks into its memory. A place without a
// block has the key 0; the others' is the block's address with all bits inverted, the lowest one
// clear while somebody is at work on the place.
struct cairn_live_samples {
    uint64_t keys;     // address of `count` words
    uint64_t entries;  // address of as many struct cairn_live_sample
    uint64_t count;
};
struct cairn_live_sample {
    uint64_t size_bytes;  // as asked for
    uint64_t rate_bytes;  // T as it was then
    uint32_t cell;
    uint32_t reserved;
};

_Static_assert(sizeof(struct cairn_sample_size) == 24, "layout");
_Static_assert(sizeof(struct cairn_sample_entry) == 160, "layout");
_Static_assert(sizeof(struct cairn_live_samples) == 24, "layout");
_Static_assert(sizeof(struct cairn_live_sample) == 24, "layout");
_Static_assert(sizeof(struct cairn_sampling) == 128, "layout");
_Static_assert(sizeof(struct cairn_sample_cell) == 64, "layout");
_Static_assert(sizeof(struct cairn_sample_value) == 56, "layout");

#endif
