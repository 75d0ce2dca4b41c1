// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/prng.h"

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint64_t rotate(uint64_t value, int by) {
    return value << by | value >> (64 - by);
}

uint64_t prng_seed_of_child(uint64_t seed, uint64_t number) {
    uint64_t state = seed ^ rotate(number + 1, 32);
    return splitmix(&state) ^ rotate(seed, 7);
}

void prng_start(struct prng *chance, uint64_t seed, uint64_t number) {
    uint64_t state = seed;
    state = splitmix(&state) ^ number * 0xD1342543DE82EF95u;
    for (int i = 0; i < 4; i++) chance->words[i] = splitmix(&state);
}

uint64_t prng_next(struct prng *chance) {
    uint64_t *word = chance->words;
    uint64_t result = rotate(word[1] * 5, 7) * 9, shifted = word[1] << 17;
    word[2] ^= word[0];
    word[3] ^= word[1];
    word[1] ^= word[2];
    word[0] ^= word[3];
    word[2] ^= shifted;
    word[3] = rotate(word[3], 45);
    return result;
}

double prng_share(struct prng *chance) {
    enum { UNUSED_BITS = 11 };
    const double step = 1.0 / (1ull << (64 - UNUSED_BITS));
    return (double)((prng_next(chance) >> UNUSED_BITS) + 1) * step;
}
