// SPDX-License-Identifier: Apache-2.0
// Random numbers for sampling, one stream a thread: xoshiro256** (Blackman and Vigna), its state
// filled by splitmix64. The same seed and number give the same stream.
#ifndef RUNTIME_SAMPLE_PRNG_H
#define RUNTIME_SAMPLE_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t words[4];
};

// The stream with this number of those that a seed has.
void prng_start(struct prng *chance, uint64_t seed, uint64_t number);

// A seed for the streams of a forked child.
uint64_t prng_seed_of_child(uint64_t seed, uint64_t number);

uint64_t prng_next(struct prng *chance);

// Evenly from (0, 1], in steps of 2^-53.
double prng_share(struct prng *chance);

#endif
