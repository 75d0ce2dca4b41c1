// SPDX-License-Identifier: Apache-2.0
#include "tool/model/estimate.h"

#include <math.h>

#include "format/sample.h"

void estimate_add(struct estimate *sum, const struct estimate *added) {
    sum->samples = (int64_t)((uint64_t)sum->samples + (uint64_t)added->samples);
    sum->bytes_variance += added->bytes_variance;
    sum->blocks_variance += added->blocks_variance;
}

int64_t estimate_whole_blocks(uint64_t parts) {
    const uint64_t half = CAIRN_SAMPLE_ONE / 2;
    bool is_negative = (int64_t)parts < 0;
    return (int64_t)(is_negative ? parts - half : parts + half) / CAIRN_SAMPLE_ONE;
}

static double deviation_of(double variance) {
    return variance > 0 ? sqrt(variance) : 0;
}

double estimate_related(double variance, double added) {
    double deviation = deviation_of(variance) + deviation_of(added);
    return deviation * deviation;
}

void estimate_add_related(struct estimate *sum, const struct estimate *added) {
    sum->samples = (int64_t)((uint64_t)sum->samples + (uint64_t)added->samples);
    sum->bytes_variance = estimate_related(sum->bytes_variance, added->bytes_variance);
    sum->blocks_variance = estimate_related(sum->blocks_variance, added->blocks_variance);
}

static const double deviations = 1.96;

// A damaged file may hold any number; what is left of sums that cancel is below a byte.
int64_t estimate_interval(double variance) {
    const double most = 0x1p62;
    if (!(variance > 0)) return 0;
    double interval = deviations * sqrt(variance);
    return interval < most ? (int64_t)interval : (int64_t)most;
}

// A little more than the square, so that the interval of it is the same again.
double estimate_variance(int64_t interval) {
    const double slack = 1e-6;
    double deviation = ((double)interval + (interval ? slack : 0)) / deviations;
    return deviation * deviation;
}

bool estimate_is_unreliable(int64_t samples, double variance) {
    return samples < ESTIMATE_FEW_SAMPLES && estimate_interval(variance) > 0;
}
