// SPDX-License-Identifier: Apache-2.0
#include "tool/model/drawn.h"

#include <math.h>

void drawn_add(struct drawn_sums *sums, double y, double x) {
    sums->y += y;
    sums->yy += y * y;
    sums->x += x;
    sums->xx += x * x;
    sums->xy += x * y;
}

double drawn_total(const struct drawn *drawn, const struct drawn_sums *sums) {
    if (!drawn->count) return 0;
    if (drawn->count == drawn->of_count) return sums->y;
    return sums->y / (double)drawn->count * (double)drawn->of_count;
}

// Of a sum whose squares around what is expected are these.
static double variance_of(const struct drawn *drawn, double squares) {
    const double count = (double)drawn->count, all = (double)drawn->of_count;
    if (drawn->count < 2 || drawn->count >= drawn->of_count || squares <= 0) return 0;
    return all * all * (1 - count / all) * squares / (count - 1) / count;
}

double drawn_variance(const struct drawn *drawn, const struct drawn_sums *sums) {
    if (!drawn->count) return 0;
    return variance_of(drawn, sums->yy - sums->y * sums->y / (double)drawn->count);
}

double drawn_share_variance(const struct drawn *drawn, const struct drawn_sums *sums,
                            double share) {
    if (!drawn->count) return 0;
    double mean = (sums->y - share * sums->x) / (double)drawn->count;
    double squares = sums->yy - 2 * share * sums->xy + share * share * sums->xx;
    return variance_of(drawn, squares - mean * mean * (double)drawn->count);
}

struct drawn_estimate drawn_bounds(double value, double variance, uint64_t units, double certain,
                                   double more) {
    // Student's quantile is about the normal one and this for each unit fewer
    const double normal = 1.96, student = 2.5;
    double width = variance > 0 && units ? (normal + student / (double)units) * sqrt(variance) : 0;
    struct drawn_estimate estimate = {value, value - width, value + width + more};
    if (estimate.low < certain) estimate.low = certain;
    if (estimate.value < estimate.low) estimate.value = estimate.low;
    if (estimate.high < estimate.value) estimate.high = estimate.value;
    return estimate;
}
