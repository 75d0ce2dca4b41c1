// SPDX-License-Identifier: Apache-2.0
// Which pages of an image in memory were copied there (core_image.present). Room is reserved for
// all that a process has reserved, resident or not: the rest reads as zeros and is never touched,
// since a page would be made of it, as large as the process' address space.
#ifndef TOOL_HEAP_PRESENT_H
#define TOOL_HEAP_PRESENT_H

#include "tool/heap/image.h"

// From now on only what is noted is there. False without memory.
bool present_begin(struct core_image *core);

void present_note(struct core_image *core, uint64_t offset, uint64_t size);

// All pages of these bytes are there, or all of the image is.
bool present_is_whole(const struct core_image *core, uint64_t offset, size_t size);

void present_read(const struct core_image *core, uint64_t offset, uint8_t *out, size_t size);

// The first offset from `offset` on that is there; `end`: none is before.
uint64_t present_next(const struct core_image *core, uint64_t offset, uint64_t end);

#endif
