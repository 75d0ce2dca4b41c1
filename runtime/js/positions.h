// SPDX-License-Identifier: Apache-2.0
// V8's tables of source positions: steps of instructions and of positions in turns, compressed.
#ifndef RUNTIME_JS_POSITIONS_H
#define RUNTIME_JS_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numbers of 7 bits a byte, the lowest first; a byte below 0x80 is the last.
struct positions_numbers {
    const uint8_t *at, *end;
};

// At the end 0.
static inline uint64_t positions_read(struct positions_numbers *numbers) {
    enum { MORE = 0x80, BITS = 7, BITS_MOST = 63 };
    uint64_t value = 0;
    for (unsigned shift = 0; numbers->at < numbers->end; shift += BITS) {
        uint8_t byte = *numbers->at++;
        if (shift < BITS_MOST) value |= (uint64_t)(byte & (MORE - 1)) << shift;
        if (!(byte & MORE)) break;
    }
    return value;
}

// The sign in the lowest bit, the rest is the number or, if negative, its complement.
static inline int64_t positions_read_signed(struct positions_numbers *numbers) {
    uint64_t value = positions_read(numbers);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

// The position in the script of the last entry that is not behind an instruction; 0 before the
// first, as V8 has it.
static inline int32_t positions_find(const uint8_t *table, size_t size, int32_t offset) {
    const unsigned flag_bits = 1, position_bits = 30;
    struct positions_numbers numbers = {table, table + size};
    int64_t at = -1, found = 0;  // -1: where a function begins
    uint64_t position = 0;
    while (numbers.at < numbers.end) {
        // a step that is no statement is its complement
        int64_t step = positions_read_signed(&numbers);
        at += step < 0 ? -step - 1 : step;
        position += (uint64_t)positions_read_signed(&numbers);
        if (at > offset) break;
        found = (int64_t)(position >> flag_bits & ((1u << position_bits) - 1)) - 1;
    }
    return (int32_t)found;
}

#endif
