// SPDX-License-Identifier: Apache-2.0
// What of the blocks of a process is of no use, by what is in them. Each byte of a block is of one
// kind, the first of these that holds:
//
//     untouched  its page is not there: it was never written, or is swapped out. Known only of a
//                process, whose pages the kernel tells
//     zero       all that is there of the block is zero
//     duplicate  the whole block is equal to one with a lower address, that is no duplicate
//     tail       behind the last byte that is not zero
//
// Beside them, where the requested size is known, slack: what the allocator gave beyond it.
//
// Contents are compared by a seeded hash first, then byte by byte; nothing of them is kept. Sixteen
// bytes for each different content.
#ifndef TOOL_HEAP_WASTE_H
#define TOOL_HEAP_WASTE_H

#include "tool/heap/blocks.h"
#include "tool/heap/reach.h"
#include "tool/heap/stopped.h"

enum waste_kind {
    WASTE_UNTOUCHED,
    WASTE_ZERO,
    WASTE_DUPLICATE,
    WASTE_TAIL,
    WASTE_SLACK,
    WASTE_KINDS,
};

struct waste_block {
    uint64_t address, size;  // size: requested, where that is known
    uint64_t bytes[WASTE_KINDS];
    bool is_first_copy;  // a duplicate of what had none before
    bool is_string;      // a duplicate that is printable text up to its first zero
};

struct waste_source {
    const struct core_reach *reach;    // its heap has the blocks
    const struct stopped_image *live;  // NULL: a core, which does not have which pages were there
    const struct core_blocks *blocks;  // recorded ones; NULL: nothing was recorded
};

// Calls `see` for each block in use, in the order of addresses, until it returns false. False
// without memory.
bool waste_find(const struct waste_source *source,
                bool (*see)(void *context, const struct waste_block *block), void *context);

#endif
