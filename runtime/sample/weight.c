// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/weight.h"

#include "format/sample.h"
#include "runtime/sample/countdown.h"
#include "runtime/sample/maths.h"

static double probability(uint64_t size_bytes, uint64_t rate_bytes) {
    uint64_t charge = countdown_charge(size_bytes);
    if (charge >= rate_bytes) return 1;
    return maths_share((double)charge / (double)rate_bytes);
}

struct weight weight_of(uint64_t size_bytes, uint64_t rate_bytes) {
    const double half = 0.5;
    double p = probability(size_bytes, rate_bytes), size = (double)size_bytes;
    double one_variance = (1 - p) / (p * p);
    return (struct weight){.bytes = p < 1 ? (int64_t)(size / p + half) : (int64_t)size_bytes,
                           .extra = (int64_t)((1 / p - 1) * CAIRN_SAMPLE_ONE + half),
                           .bytes_variance = size * size * one_variance,
                           .blocks_variance = one_variance};
}

bool weight_stays(struct prng *chance, uint64_t size_bytes, uint64_t old_bytes,
                  uint64_t new_bytes) {
    double share = probability(size_bytes, new_bytes) / probability(size_bytes, old_bytes);
    return share >= 1 || prng_share(chance) <= share;
}
