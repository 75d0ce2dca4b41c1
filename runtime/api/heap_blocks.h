// SPDX-License-Identifier: Apache-2.0
// What the blocks of an allocator by name (--wrap) are like, by the stacks that asked for them:
// their sizes, and with --ages how old they become. As block_stats.h has it of cells, with two
// differences: all sizes are counted, from the second one on, and a block may be taken out again,
// when its arena gets another name.
//
// Whoever calls this holds the lock of the heap (heap_stacks.h).
#ifndef RUNTIME_API_HEAP_BLOCKS_H
#define RUNTIME_API_HEAP_BLOCKS_H

#include <stdint.h>

#include "format/format.h"
#include "runtime/live/live.h"
#include "runtime/sys/sys.h"

// Another size than the entry's usual one: `number` is the entry's index.
void heap_blocks_add_other(struct cairn_heap_stack *entry, uint32_t number, uint64_t bytes);
void heap_blocks_drop_other(struct cairn_heap_stack *entry, uint64_t bytes);

// A block that was freed so many allocations of the heap after its own, at `ms`; and that it was
// none. Nothing is done where ages are not wanted.
void heap_blocks_count_age(struct cairn_heap_stack *entry, uint32_t number, uint32_t calls,
                           uint32_t ms);
void heap_blocks_drop_age(const struct cairn_heap_stack *entry, uint32_t calls, uint32_t ms);

// A block of an entry, whose calls it is counted in already.
ALWAYS_INLINE void heap_blocks_add(struct cairn_heap_stack *entry, uint32_t number,
                                   uint64_t bytes) {
    if (entry->calls == 1 && !entry->sizes) entry->size = bytes;
    if (unlikely(entry->size != bytes)) heap_blocks_add_other(entry, number, bytes);
}

// It is no longer one of the entry's.
ALWAYS_INLINE void heap_blocks_drop(struct cairn_heap_stack *entry, uint64_t bytes) {
    if (entry->size != bytes) heap_blocks_drop_other(entry, bytes);
}

#endif
