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

// A damaged file may hold any number; what is left of sums that cancel is below a byte.
int64_t estimate_interval(double variance) {
    const double deviations = 1.96, most = 0x1p62;
    if (!(variance > 0)) return 0;
    double interval = deviations * sqrt(variance);
    return interval < most ? (int64_t)interval : (int64_t)most;
}

bool estimate_is_unreliable(int64_t samples, double variance) {
    return samples < ESTIMATE_FEW_SAMPLES && estimate_interval(variance) > 0;
}
