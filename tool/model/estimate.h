// SPDX-License-Identifier: Apache-2.0
// How sure a number is that samples were added up to (format/sample.h). A number that was counted
// has no variance. Variances of independent samples add up, so those of stacks do; of a cell that
// books another thread's frees they are negative, like its bytes.
#ifndef TOOL_MODEL_ESTIMATE_H
#define TOOL_MODEL_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

struct estimate {
    int64_t samples;  // behind it, those of large blocks included, which are certain
    double bytes_variance, blocks_variance;
};

// What a stack or process has estimates of; THEN: at a moment that was asked for.
enum estimated {
    ESTIMATED_PEAK,
    ESTIMATED_EXIT,
    ESTIMATED_ALLOCATED,
    ESTIMATED_THEN,
    ESTIMATED_COUNT
};

void estimate_add(struct estimate *sum, const struct estimate *added);
// Of processes one of which is a fork: both may have samples of the same blocks, and go wrong
// together. Then deviations add up, which is never too little.
void estimate_add_related(struct estimate *sum, const struct estimate *added);
double estimate_related(double variance, double added);

// Blocks beyond one a sample, as the format counts them (CAIRN_SAMPLE_ONE), rounded.
int64_t estimate_whole_blocks(uint64_t parts);

// Half the width of the 95 % interval of a number with this variance; 0: it is exact.
int64_t estimate_interval(double variance);
// The variance of a number whose interval is known.
double estimate_variance(int64_t interval);

// With fewer samples an interval says little.
#define ESTIMATE_FEW_SAMPLES 5
bool estimate_is_unreliable(int64_t samples, double variance);

#endif
