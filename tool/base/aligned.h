// SPDX-License-Identifier: Apache-2.0
// Room for structures whose alignment is above that of malloc's blocks: a recording's header, and
// whatever holds one.
#ifndef TOOL_BASE_ALIGNED_H
#define TOOL_BASE_ALIGNED_H

#include <stdlib.h>
#include <string.h>

// Returns a block of zeros, for free, or NULL without memory. `bytes` is a multiple of `alignment`,
// as a sizeof is.
static inline void *aligned_zeros(size_t alignment, size_t bytes) {
    void *block = aligned_alloc(alignment, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

#endif
