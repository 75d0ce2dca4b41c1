// SPDX-License-Identifier: Apache-2.0
// Numbers as HotSpot compresses them in tables of lines and debug information (UNSIGNED5, in the
// form of JDK 17): a byte below 192 ends a number, others are followed by more.
#ifndef RUNTIME_JAVA_NUMBERS_H
#define RUNTIME_JAVA_NUMBERS_H

#include <stdint.h>

struct numbers {
    const uint8_t *at, *end;
};

// At the end 0.
static inline uint32_t numbers_read(struct numbers *numbers) {
    enum { LAST = 192, STEP = 6, BYTES_MOST = 5 };
    uint64_t value = 0;
    for (unsigned i = 0; i < BYTES_MOST && numbers->at < numbers->end; i++) {
        uint8_t byte = *numbers->at++;
        value += (uint64_t)byte << STEP * i;
        if (byte < LAST) break;
    }
    return (uint32_t)value;
}

static inline int32_t numbers_read_signed(struct numbers *numbers) {
    uint32_t value = numbers_read(numbers);
    return (int32_t)(value >> 1 ^ (0 - (value & 1)));
}

#endif
