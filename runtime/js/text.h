// SPDX-License-Identifier: Apache-2.0
// Strings of V8: where their characters lie, and copies of them as UTF-8.
#ifndef RUNTIME_JS_TEXT_H
#define RUNTIME_JS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/managed/memory.h"

// A string whose characters lie in one piece.
struct text {
    uint64_t at;
    uint32_t length;  // characters of `width` bytes
    uint32_t width;   // 1: Latin-1; 2: UTF-16
};

// Finds the characters of a string; false: it is none, or not in one piece.
bool text_find(struct memory_reader *memory, uint64_t string, struct text *text);

// Copies characters from `first` on; how many there were. At most TEXT_PIECE_BYTES at once.
enum { TEXT_PIECE_BYTES = 4096 };
size_t text_read(const struct text *text, uint32_t first, uint8_t piece[TEXT_PIECE_BYTES]);

// A character of a piece.
static inline uint32_t text_character(const struct text *text, const uint8_t *piece, size_t index) {
    if (text->width == 1) return piece[index];
    return piece[2 * index] | (uint32_t)piece[2 * index + 1] << 8;
}

// Copies a string as UTF-8, cut to `most` bytes with the NUL at its end; the bytes written. What is
// no string is an empty one.
size_t text_put(struct memory_reader *memory, uint64_t string, uint8_t *out, size_t most);

#endif
