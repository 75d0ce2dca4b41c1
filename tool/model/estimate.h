// SPDX-License-Identifier: Apache-2.0
// How sure a number is that samples were added up to (format/sample.h). A number that was counted
// has no variance. Variances of independent samples add up, so those of stacks do; of a cell that
// books another thread's frees they are negative, like its bytes.
//
// Samples alone do not say what was missed. The blocks of a stack that no sample met have left no
// trace in its variance, so an interval has a second part, the weight that a missed block would
// have had: T for bytes, T / size for blocks. It does not add up over stacks, the largest counts.
//
// Samples of large blocks (T bytes and more) are certain: none of them is missed. They say nothing
// of smaller blocks, and are counted apart from the other samples. docs/explain/sampling.md has the
// formulas.
#ifndef TOOL_MODEL_ESTIMATE_H
#define TOOL_MODEL_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/model/reader.h"

struct estimate {
    int64_t samples;  // all of them, certain ones too
    double bytes_variance, blocks_variance;
    double uncertain;     // how many of the samples are not certain; a little less at times
    double extra_blocks;  // what they stand for beyond themselves, the sum of 1/p - 1
    double bytes_weight, blocks_weight;  // of a block that was missed; 0: there is none
    double bytes_limit, blocks_limit;    // most that can have been missed; 0: not known
    // Most that there can be, as it was counted beside the samples: of the process' own blocks and
    // of those that were there before; 0: there are none of that kind. Both 0: not known.
    double own_bytes_most, own_blocks_most, before_bytes_most, before_blocks_most;
    // Least that a process' peak can be: what was counted as it was attached to, and the lower end
    // of what it held beyond noise (sampled_peak.h). Sums have 0.
    double bytes_least, blocks_least;
    // Taken off, since the highest of many sums of samples is too high: the interval reaches as far
    // beyond the value as it would have otherwise. It adds up.
    double bytes_over, blocks_over;
};

// What a stack or process has estimates of; THEN: at a moment that was asked for.
enum estimated {
    ESTIMATED_PEAK,
    ESTIMATED_EXIT,
    ESTIMATED_ALLOCATED,
    ESTIMATED_AT,
    ESTIMATED_COUNT
};

// Of what was counted: it changes no sum.
static inline bool estimate_is_none(const struct estimate *estimate) {
    bool is_exact = !estimate->samples && estimate->uncertain == 0 && estimate->extra_blocks == 0 &&
                    estimate->bytes_variance == 0 && estimate->blocks_variance == 0;
    return is_exact && estimate->bytes_weight == 0 && estimate->blocks_weight == 0 &&
           estimate->bytes_limit == 0 && estimate->blocks_limit == 0 &&
           estimate->own_bytes_most == 0 && estimate->before_bytes_most == 0;
}

// Of stacks, cells or threads of one process.
void estimate_add(struct estimate *sum, const struct estimate *added);
// Of processes one of which is a fork: both may have samples of the same blocks, and go wrong
// together. Then deviations add up, which is never too little.
void estimate_add_related(struct estimate *sum, const struct estimate *added);
double estimate_related(double variance, double added);
// Of what is added up over processes no limit is known.
void estimate_forget_limits(struct estimate *estimate);

// Blocks beyond one a sample, as the format counts them (CAIRN_SAMPLE_ONE), rounded.
int64_t estimate_whole_blocks(uint64_t parts);

// Half the widths of the 95 % intervals; 0: the number is exact.
int64_t estimate_bytes_interval(const struct estimate *estimate);
int64_t estimate_blocks_interval(const struct estimate *estimate);

// Returns how many blocks are so many bytes of samples that are too high.
double estimate_over_blocks(const struct estimate *estimate, double bytes);
// Takes so much off a peak of `value` bytes and leaves its interval where it ends above; below it
// ends at that of what is left.
void estimate_take_over(struct estimate *estimate, double bytes, double blocks, double value);

// Effective samples, (sum of weights)^2 / (sum of their squares), without certain ones: of bytes,
// where all weigh nearly the same, and of blocks, where those of small blocks weigh most.
int64_t estimate_samples(const struct estimate *estimate);
int64_t estimate_block_samples(const struct estimate *estimate);
int64_t estimate_certain(const struct estimate *estimate);

// What of the value is an estimate at most; the rest was seen for certain.
double estimate_unsure_bytes(const struct estimate *estimate);
double estimate_unsure_blocks(const struct estimate *estimate);

// The most that the value can be, of which the interval says no more; 0: not known.
int64_t estimate_bytes_most(const struct estimate *estimate);
int64_t estimate_blocks_most(const struct estimate *estimate);

// Half the width of the interval of a number with this variance, and the variance of a number whose
// interval is known.
int64_t estimate_interval(double variance);
double estimate_variance(int64_t interval);
// Of bytes whose interval and samples are all that is known.
struct estimate estimate_of_interval(int64_t interval_bytes, int64_t samples);

// With fewer samples an interval says little.
#define ESTIMATE_FEW_SAMPLES 5

// How sure the numbers of sampled cells are, as the recording says it (format/sample.h), without
// the stacks that they belong to.

// What a cell holds keeps changing after the peak; then it has its value at the peak apart.
// `is_peak_at_end`: the heap never was larger than at the end of the recording.
bool sampled_has_saved_peak(const struct recording *recording, const struct recorded_cell *cell,
                            bool is_peak_at_end);

// What can have been missed: the same for all cells of a recording.
struct sampled_scale {
    double rate_least, rate_most;      // T, at its lowest and highest
    double blocks_weight;              // of a block of the smallest size
    double bytes_limit, blocks_limit;  // most that all missed blocks can be; 0: not known
    bool is_complete;                  // no block can have been missed
    double own_bytes, own_blocks, before_bytes, before_blocks;  // as sampled_totals; 0: not known
};
// Counts of what was allocated, made beside the samples.
struct sampled_totals {
    bool is_known;
    uint64_t own_blocks, own_bytes;        // by the process
    uint64_t before_blocks, before_bytes;  // what was there when the recording began
    bool is_before_estimate;               // these two are of samples, too
};
struct sampled_scale sampled_scale_of(const struct recording *recording,
                                      struct sampled_totals totals);
// A number with these variances, of so many samples that stand for so many more blocks.
struct estimate sampled_estimate(const struct sampled_scale *scale, int64_t samples,
                                 double extra_blocks, double bytes_variance,
                                 double blocks_variance);
// No block below this size has such a stack.
void sampled_exclude_below(const struct sampled_scale *scale, uint64_t size,
                           struct estimate *estimate);

// Of a cell; numbers of samples are what its counters say.
struct sampled_counts {
    int64_t calls, peak, exit;
};
void sampled_cell(const struct recording *recording, const struct sampled_scale *scale, size_t id,
                  bool has_saved_peak, const struct sampled_counts *counts,
                  struct estimate estimates[ESTIMATED_COUNT]);

// Over all cells. All zero if the recording is no sample.
void sampled_sum(const struct recording *recording, const struct sampled_scale *scale,
                 bool is_peak_at_end, struct estimate estimates[ESTIMATED_COUNT]);
// Gives sums that no sample is part of the interval of what may have been missed.
void sampled_add_unseen(const struct sampled_scale *scale,
                        struct estimate estimates[ESTIMATED_COUNT]);

#endif
