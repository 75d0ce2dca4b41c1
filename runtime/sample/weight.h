// SPDX-License-Identifier: Apache-2.0
// What a sampled block stands for. It was chosen with probability p, so it counts as 1/p blocks and
// k/p bytes (Horvitz and Thompson); their sums are right on average for any mix of sizes, and the
// variance of a sum is estimated by the sum of the samples' own parts. A weight follows from size
// and rate alone: what is added when a block is allocated is taken off to the last bit when it is
// freed.
//
// When the rate is raised, a sample stays with the probability by which it becomes rarer, p'/p, and
// then has the weight it would have had with the new rate from the start.
#ifndef RUNTIME_SAMPLE_WEIGHT_H
#define RUNTIME_SAMPLE_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sample/prng.h"

struct weight {
    int64_t bytes;           // k/p, rounded: half a byte of at least T
    int64_t extra;           // 1/p - 1, in units of 1/CAIRN_SAMPLE_ONE
    double bytes_variance;   // k^2 (1-p) / p^2
    double blocks_variance;  // (1-p) / p^2
};

struct weight weight_of(uint64_t size_bytes, uint64_t rate_bytes);

// Whether a sample of `old_bytes` stays one when the rate becomes `new_bytes`, which is higher.
bool weight_stays(struct prng *chance, uint64_t size_bytes, uint64_t old_bytes, uint64_t new_bytes);

#endif
