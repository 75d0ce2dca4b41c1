// SPDX-License-Identifier: Apache-2.0
// Whose live blocks keep which resident pages (docs/reference/metrics.md, "Pages").
//
// A resident page with live blocks is charged to their owners (call stacks, sizes: whatever the
// caller numbers) in proportion to the live bytes that each has on it; what all owners are charged
// adds up to the pages that have any. A page with blocks of one owner is kept by it alone. A block
// of no bytes counts as one: it keeps its page as well.
#ifndef TOOL_MODEL_RESIDENCY_H
#define TOOL_MODEL_RESIDENCY_H

#include "tool/base/array.h"
#include "tool/base/error.h"

#include <stdint.h>

// Memory of the heap. Start and end are multiples of a page.
struct residency_range {
    uint64_t start, end;
    const uint8_t *are_resident;  // a byte a page, not 0: it is; NULL: all are
};

// A live block.
struct residency_block {
    uint64_t address, size;  // bytes as they count
    uint32_t owner;
    float weight;  // blocks that it stands for as a sample; 1: itself
};

// Where the blocks come from, ascending by address: one after the other, as they may be hundreds of
// millions. `next` is false when there are no more.
struct residency_blocks {
    bool (*next)(void *context, struct residency_block *block);
    void *context;
};

struct residency_owner {
    uint64_t blocks, live_bytes;  // of all its blocks, on resident pages or not
    uint64_t kept_bytes;          // its share of resident pages
    uint64_t alone_bytes;         // pages on which nobody else has a live block
    double estimated_bytes;       // as kept_bytes, each block's share times its weight
};

struct residency {
    struct residency_owner *owners;
    size_t owner_count, owner_room;
    uint64_t page_bytes;      // of the kernel's pages
    uint64_t range_bytes;     // of all ranges
    uint64_t resident_bytes;  // of their pages
    uint64_t live_bytes;      // live bytes on resident pages
    uint64_t kept_bytes;      // resident pages with live blocks: the sum of the owners' shares
    uint64_t outside_blocks;  // that lie in no range
    ARRAY(uint32_t)
    pages;  // live bytes of each page of the ranges, one range behind the other;
            // RESIDENCY_ABSENT: it is not resident
};
#define RESIDENCY_ABSENT UINT32_MAX

// Ranges ascend and lie apart. There are at least `owner_count` owners, and as many as the blocks
// name: blocks that come later may have owners that were not known before. Takes the blocks to
// their end. False without memory.
bool residency_build(struct residency *residency, uint64_t page_bytes,
                     const struct residency_range *ranges, size_t range_count,
                     const struct residency_blocks *blocks, size_t owner_count,
                     struct error *error);
void residency_free(struct residency *residency);

// Owners with resident memory by what they keep, the most first; for free(). NULL without memory.
uint32_t *residency_rank(const struct residency *residency, size_t *count);

#endif
