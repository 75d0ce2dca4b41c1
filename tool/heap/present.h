// SPDX-License-Identifier: Apache-2.0
// Notes which pages of an image in memory were copied there. Room is reserved for all that a
// process has reserved, resident or not: the rest reads as zeros and is never touched, since a page
// would be made of it, as large as the process' address space.
#ifndef TOOL_HEAP_PRESENT_H
#define TOOL_HEAP_PRESENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct present {
    uint64_t *bits;  // one for each page; NULL: all are there
    uint64_t page_bytes;
};

// From now on only what is noted is there. False without memory.
bool present_begin(struct present *present, uint64_t size, uint64_t page_bytes);
void present_free(struct present *present);

void present_note(struct present *present, uint64_t offset, uint64_t size);

// All pages of these bytes are there.
bool present_is_whole(const struct present *present, uint64_t offset, size_t size);

// Copies a part of the image whose bytes begin at `image`.
void present_read(const struct present *present, const uint8_t *image, uint64_t offset,
                  uint8_t *out, size_t size);

// The first offset from `offset` on that is there; `end`: none is before.
uint64_t present_next(const struct present *present, uint64_t offset, uint64_t end);

#endif
