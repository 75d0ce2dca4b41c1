// SPDX-License-Identifier: Apache-2.0
// Sums over many units (stretches of a heap, large blocks), estimated from some of them that were
// drawn at random: each as likely as any other, none twice. Where all were drawn the sum is exact,
// else it is the mean of those drawn, times the number of all.
//
// The variance is that between the units drawn, less what finite numbers take away. The share that
// one sum is of another has the variance of what is left of the first one (a ratio estimator, as in
// Cochran, Sampling Techniques, chapters 2 and 6).
#ifndef TOOL_MODEL_DRAWN_H
#define TOOL_MODEL_DRAWN_H

#include <stdint.h>

struct drawn {
    uint64_t count, of_count;  // units that were drawn, and all of them
};

// Over the units drawn: of a figure y, and of x, what it is to be a share of.
struct drawn_sums {
    double y, yy, x, xx, xy;
};

void drawn_add(struct drawn_sums *sums, double y, double x);

// The sum of y over all units, and its variance.
double drawn_total(const struct drawn *drawn, const struct drawn_sums *sums);
double drawn_variance(const struct drawn *drawn, const struct drawn_sums *sums);
// The variance of the sum of y - share * x.
double drawn_share_variance(const struct drawn *drawn, const struct drawn_sums *sums, double share);

struct drawn_estimate {
    double value, low, high;  // the interval of 95 %
};

// `certain`: what was seen, which the interval does not go below. `more`: what could not be read
// and may be of the kind: the interval goes up by it.
struct drawn_estimate drawn_bounds(double value, double variance, uint64_t units, double certain,
                                   double more);

#endif
