// SPDX-License-Identifier: Apache-2.0
// Numbers that look random and are the same in every run (splitmix64).
#ifndef TESTS_UNIT_RUNTIME_RANDOM_H
#define TESTS_UNIT_RUNTIME_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state) {
    uint64_t value = *state += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit) {
    return random_next(state) % limit;
}

static inline bool random_chance(uint64_t *state, unsigned percent) {
    return random_below(state, 100) < percent;
}

#endif
