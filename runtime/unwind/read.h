// SPDX-License-Identifier: Apache-2.0
// A bounds-checked cursor over call frame information. A read past the end returns 0 and marks the
// cursor broken; callers look at `is_broken` where it matters instead of after every byte.
#ifndef RUNTIME_UNWIND_READ_H
#define RUNTIME_UNWIND_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at, *end;
    bool is_broken;
};

static inline uint64_t read_bytes(struct cursor *cursor, unsigned count) {
    uint64_t value = 0;
    if ((uint64_t)(cursor->end - cursor->at) < count) {
        cursor->is_broken = true;
        cursor->at = cursor->end;
        return 0;
    }
    memcpy(&value, cursor->at, count);
    cursor->at += count;
    return value;
}

static inline void read_skip(struct cursor *cursor, uint64_t count) {
    if ((uint64_t)(cursor->end - cursor->at) < count) {
        cursor->is_broken = true;
        cursor->at = cursor->end;
        return;
    }
    cursor->at += count;
}

static inline uint64_t read_uleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint64_t byte = read_bytes(cursor, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    cursor->is_broken = true;
    return 0;
}

static inline int64_t read_sleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint64_t byte = read_bytes(cursor, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        if ((byte & 0x40) && shift + 7 < 64) value |= ~(uint64_t)0 << (shift + 7);
        return (int64_t)value;
    }
    cursor->is_broken = true;
    return 0;
}

#endif
