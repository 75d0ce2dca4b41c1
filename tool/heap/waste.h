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
// And what few bytes cost: a page that is there with at most an eighth of it in blocks is kept by
// these for nothing but them. The rest of it is charged to them in proportion: sparse. These bytes
// are in no block.
//
// Of a heap of which a part was drawn (tool/heap/windows.h) blocks may have pages that were not
// copied. The use of such a block ends where the last of its bytes that were copied and are not
// zero lies, if all behind it was copied; if not, so many bytes of it may be of any kind: unread.
//
// Contents are compared by a seeded hash first, then byte by byte; nothing of them is kept. Sixteen
// bytes for each different content.
#ifndef TOOL_HEAP_WASTE_H
#define TOOL_HEAP_WASTE_H

#include "tool/glibc/chunks.h"
#include "tool/heap/blocks.h"
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
    uint64_t unread;     // that are in none of these, and may be
    uint64_t sparse;     // its share of what it and few others keep resident beside them
    size_t unit;         // of what was drawn: windows_unit_of; 0: everything was read
    bool is_first_copy;  // a duplicate of what had none before
    bool is_string;      // a duplicate that is printable text up to its first zero
};

struct waste_source {
    const struct core_image *core;
    const struct glibc_heap *heap;     // its chunks are the blocks
    const struct stopped_image *live;  // NULL: a core, which does not have which pages were there
    const struct core_blocks *blocks;  // recorded ones; NULL: nothing was recorded
};

// Calls `see` for each block in use, in the order of addresses, until it returns false. False
// without memory.
bool waste_find(const struct waste_source *source,
                bool (*see)(void *context, const struct waste_block *block), void *context);

// The blocks that begin in what was drawn of a process, ascending, as chunks of a heap. `blocks`:
// recorded ones that begin there, NULL: glibc's. `left_out`: windows whose chunks make no sense any
// more. False without memory.
bool waste_drawn_blocks(const struct stopped_image *live, const struct core_blocks *blocks,
                        struct glibc_heap *heap, size_t *left_out);

#endif
