// SPDX-License-Identifier: Apache-2.0
// The blocks that a recorded process held when its core was taken: address, size as requested, and
// the cell, by which stack and thread are known; from the live map in the core (format/live_map.h).
#ifndef TOOL_HEAP_BLOCKS_H
#define TOOL_HEAP_BLOCKS_H

#include "format/format.h"
#include "tool/base/spans.h"
#include "tool/glibc/chunks.h"
#include "tool/heap/image.h"

struct core_block {
    uint64_t address, size;  // as requested
    uint32_t cell;           // never 0
};

// Blocks in the 4 MiB from `start` on.
struct core_block_leaf {
    uint64_t start;
    size_t first;  // of the items
};

// A core may have hundreds of millions: eight bytes each, which blocks.c explains.
struct core_blocks {
    ARRAY(uint64_t) items;                 // ascending by address
    ARRAY(struct core_block_leaf) leaves;  // ascending; none is empty
    ARRAY(struct core_block) large;        // ascending; those that do not fit into eight bytes
    uint64_t bytes;                        // the sum of their sizes
    uint64_t rejected_count;  // slots that contradict what is around them: in mid-update
    uint64_t missing_leaves;  // stretches of 4 MiB whose slots the core lacks
    struct spans map;         // settled: where the map itself lies
};

// `cell_count`: cells with higher numbers do not exist. `begins`: settled; blocks that begin
// elsewhere are left out; NULL: none are. False without memory, or if the map is not in the core.
bool core_read_blocks(const struct core_image *core, const struct cairn_header *header,
                      size_t cell_count, const struct spans *begins, struct core_blocks *blocks,
                      struct error *error);
void core_free_blocks(struct core_blocks *blocks);

// Goes through the blocks in the order of addresses: zero it but for `blocks`.
struct core_block_cursor {
    const struct core_blocks *blocks;
    size_t next, leaf;
};
bool core_blocks_next(struct core_block_cursor *cursor, struct core_block *block);

// Adds those blocks to glibc's heap that are in none of its chunks: they are another allocator's.
// `are_all_glibc` becomes false if there are any. False without memory.
bool core_add_blocks(const struct core_image *core, const struct core_blocks *blocks,
                     struct glibc_heap *heap, bool *are_all_glibc);

// The block that `address` lies in or directly behind of; false: none.
bool core_block_of(const struct core_blocks *blocks, uint64_t address, struct core_block *block);

#endif
