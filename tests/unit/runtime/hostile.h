// SPDX-License-Identifier: Apache-2.0
// Words for memory that says anything.
#ifndef TESTS_UNIT_RUNTIME_HOSTILE_H
#define TESTS_UNIT_RUNTIME_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/runtime/random.h"

// A word that leads somewhere in the arena, near its end, nowhere, or is a number; sometimes
// `usual`, as sound memory has it.
static inline uint64_t hostile_word(uint64_t *seed, const uint64_t *arena, size_t words,
                                    uint64_t usual) {
    const uint64_t kinds = 8, small = 300, types = 5;
    switch (random_below(seed, kinds)) {
    case 0:
        return random_next(seed);
    case 1:
        return (uintptr_t)(arena + words) - random_below(seed, small);
    case 2:
        return random_below(seed, small);
    case 3:
        return random_below(seed, small) << 32 | random_below(seed, types);
    case 4:
        return usual;
    default:
        return (uintptr_t)(arena + random_below(seed, words));
    }
}

#endif
