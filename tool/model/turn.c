// SPDX-License-Identifier: Apache-2.0
// Eight bytes of eight entries at a time, in eight registers. Byte by byte each column would go
// through all entries of a block, which the first-level cache does not hold.
#include "tool/model/turn.h"

#include <string.h>

enum {
    SIDE = 8,   // of a square: entries, and bytes of each
    LINE = 64,  // entries whose bytes of one column share a cache line
};

// Exchanges the upper bytes of `upper` with the lower ones of `lower`, in pieces of `bits`.
static inline void exchange(uint64_t *lower, uint64_t *upper, unsigned bits, uint64_t mask) {
    uint64_t differing = ((*lower >> bits) ^ *upper) & mask;
    *upper ^= differing;
    *lower ^= differing << bits;
}

// Byte j of word i becomes byte i of word j: halves of the square change places, then halves of
// those. Both kinds of processor have their lowest byte first.
static inline void turn_square(uint64_t words[SIDE]) {
    const uint64_t halves = 0x00000000ffffffff, quarters = 0x0000ffff0000ffff,
                   bytes = 0x00ff00ff00ff00ff;
    exchange(&words[0], &words[4], 32, halves);
    exchange(&words[1], &words[5], 32, halves);
    exchange(&words[2], &words[6], 32, halves);
    exchange(&words[3], &words[7], 32, halves);
    exchange(&words[0], &words[2], 16, quarters);
    exchange(&words[1], &words[3], 16, quarters);
    exchange(&words[4], &words[6], 16, quarters);
    exchange(&words[5], &words[7], 16, quarters);
    exchange(&words[0], &words[1], 8, bytes);
    exchange(&words[2], &words[3], 8, bytes);
    exchange(&words[4], &words[5], 8, bytes);
    exchange(&words[6], &words[7], 8, bytes);
}

static inline void square_move(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step) {
    uint64_t words[SIDE];
    for (size_t i = 0; i < SIDE; i++) memcpy(&words[i], from + i * from_step, SIDE);
    turn_square(words);
    for (size_t i = 0; i < SIDE; i++) memcpy(to + i * to_step, &words[i], SIDE);
}

// Entries that lines of the cache hold whole; the others are turned byte by byte.
static size_t count_in_squares(size_t count, size_t entry_bytes) {
    return entry_bytes % SIDE ? 0 : count - count % LINE;
}

void turn_to_columns(const uint8_t *entries, size_t count, size_t entry_bytes, uint8_t *columns) {
    size_t squares = count_in_squares(count, entry_bytes);
    for (size_t line = 0; line < squares; line += LINE)
        for (size_t byte = 0; byte < entry_bytes; byte += SIDE)
            for (size_t i = line; i < line + LINE; i += SIDE)
                square_move(entries + i * entry_bytes + byte, entry_bytes,
                            columns + byte * count + i, count);
    for (size_t byte = 0; byte < entry_bytes; byte++)
        for (size_t i = squares; i < count; i++)
            columns[byte * count + i] = entries[i * entry_bytes + byte];
}

void turn_to_entries(const uint8_t *columns, size_t count, size_t entry_bytes, uint8_t *entries) {
    size_t squares = count_in_squares(count, entry_bytes);
    for (size_t line = 0; line < squares; line += LINE)
        for (size_t byte = 0; byte < entry_bytes; byte += SIDE)
            for (size_t i = line; i < line + LINE; i += SIDE)
                square_move(columns + byte * count + i, count, entries + i * entry_bytes + byte,
                            entry_bytes);
    for (size_t byte = 0; byte < entry_bytes; byte++)
        for (size_t i = squares; i < count; i++)
            entries[i * entry_bytes + byte] = columns[byte * count + i];
}
