// SPDX-License-Identifier: Apache-2.0
// Numbers as HotSpot compresses them in tables of lines and debug information (UNSIGNED5): a byte
// below 192 ends a number, others are followed by more. From JDK 20 on bytes are one higher than
// what they stand for, so that none is 0.
#ifndef RUNTIME_JAVA_NUMBERS_H
#define RUNTIME_JAVA_NUMBERS_H

#include <stdint.h>

struct numbers {
    const uint8_t *at, *end;
    uint8_t least;  // byte
};

// At the end 0.
static inline uint32_t numbers_read(struct numbers *numbers) {
    enum { LAST = 192, STEP = 6, BYTES_MOST = 5 };
    uint64_t value = 0;
    for (unsigned i = 0; i < BYTES_MOST && numbers->at < numbers->end; i++) {
        uint8_t byte = *numbers->at++;
        value += (uint64_t)(uint8_t)(byte - numbers->least) << STEP * i;
        if (byte < LAST) break;
    }
    return (uint32_t)value;
}

static inline int32_t numbers_read_signed(struct numbers *numbers) {
    uint32_t value = numbers_read(numbers);
    return (int32_t)(value >> 1 ^ (0 - (value & 1)));
}

#endif
