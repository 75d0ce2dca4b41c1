// SPDX-License-Identifier: Apache-2.0
// A cursor over little-endian bytes that never reads beyond their end: a read that does not fit
// gives 0 and marks the cursor bad, so that a parser may check once after several reads.
#ifndef TOOL_SYMBOL_BYTES_H
#define TOOL_SYMBOL_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
};

static inline size_t bytes_left(const struct bytes *bytes) {
    return (size_t)(bytes->end - bytes->at);
}

// Everything from here on reads as nothing.
static inline void bytes_fail(struct bytes *bytes) {
    bytes->at = bytes->end;
    bytes->is_bad = true;
}

static inline void bytes_skip(struct bytes *bytes, uint64_t count) {
    if (count > bytes_left(bytes))
        bytes_fail(bytes);
    else
        bytes->at += count;
}

// An unsigned number of 1 to 8 bytes.
static inline uint64_t bytes_number(struct bytes *bytes, size_t size) {
    uint64_t value = 0;
    if (size > bytes_left(bytes) || size > sizeof value) {
        bytes_fail(bytes);
        return 0;
    }
    for (size_t i = 0; i < size; i++) value |= (uint64_t)bytes->at[i] << (8 * i);
    bytes->at += size;
    return value;
}

static inline uint8_t bytes_u8(struct bytes *bytes) {
    if (bytes->at == bytes->end) {
        bytes->is_bad = true;
        return 0;
    }
    return *bytes->at++;
}

static inline uint64_t bytes_uleb(struct bytes *bytes) {
    uint64_t value = 0;
    for (unsigned shift = 0; bytes->at < bytes->end; shift += 7) {
        uint8_t byte = *bytes->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    bytes->is_bad = true;
    return 0;
}

static inline int64_t bytes_sleb(struct bytes *bytes) {
    uint64_t value = 0;
    for (unsigned shift = 0; bytes->at < bytes->end;) {
        uint8_t byte = *bytes->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80) continue;
        if (shift < 64 && (byte & 0x40)) value |= UINT64_MAX << shift;
        return (int64_t)value;
    }
    bytes->is_bad = true;
    return 0;
}

// A terminated text, NULL if no terminator follows.
static inline const char *bytes_text(struct bytes *bytes) {
    const uint8_t *start = bytes->at;
    const uint8_t *end = start < bytes->end ? memchr(start, 0, bytes_left(bytes)) : NULL;
    if (!end) {
        bytes_fail(bytes);
        return NULL;
    }
    bytes->at = end + 1;
    return (const char *)start;
}

// The terminated text at an offset of a whole string section, NULL if it is not inside.
static inline const char *bytes_text_at(const struct bytes *section, uint64_t offset) {
    if (offset >= bytes_left(section)) return NULL;
    struct bytes rest = {section->at + offset, section->end, false};
    return bytes_text(&rest);
}

#endif
