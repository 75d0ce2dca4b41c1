// SPDX-License-Identifier: Apache-2.0
// The live map: block address -> (cell id, requested size), for every block that was recorded and
// not yet freed. No locks, no hashing of blocks: one slot per granule of heap.
//
//   address ──22 bits──▶ leaf table (2^16 words, open addressing) ──▶ leaf: slots of 4 MiB of heap
//
// Two slot layouts, chosen once by the allocator in use:
//   narrow  4 bytes per 32 bytes of heap, for glibc, whose chunks are at least 32 bytes apart and
//           tell their usable size in the word before the block:
//             id (25 bits) << 7 | address bit 4 << 6 | slack (6 bits)
//           requested = usable - slack; slack 63: the next slot holds the slack - 62, never 0 (a
//           block with so much is long enough to own that slot alone)
//   wide    8 bytes per 16 bytes of heap, for every other allocator:
//             size (32 bits) << 32 | id (32 bits);
//           size 2^32-1: the next slot holds the size. Blocks at odd multiples of 8 (8-byte size
//           classes) live in a second set of leaves, chosen by address bit 3.
// An empty slot is 0. A slot never holds an address, so leak scanners take nothing for a pointer.
//
// Invariants: a block's slot is written by the thread that got the block and cleared by the thread
// that gives it back, before the allocator sees it; so one slot has one writer at a time. Leaves
// are never given back. Private memory: a forked child has its own copy.
#ifndef RUNTIME_LIVE_LIVE_H
#define RUNTIME_LIVE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

enum { LIVE_LEAF_SHIFT = 22, LIVE_TABLE_BITS = 16 };
enum { LIVE_NARROW_SHIFT = 5, LIVE_WIDE_SHIFT = 4 };  // log2 of the granule
enum { LIVE_ID_SHIFT = 7, LIVE_HALF_SHIFT = 6, LIVE_SLACK_ESCAPE = 63, LIVE_SLACK_BASE = 62 };
#define LIVE_SIZE_ESCAPE 0xffffffffu
#define LIVE_ID_LIMIT (1u << (32 - LIVE_ID_SHIFT))

struct live {
    bool is_wide;
    // (atomic) 0, or key << 35 | leaf address >> 12; key = address >> 22, plus bit 25 for odd
    // blocks
    uint64_t *table;
};

extern HIDDEN struct live live;

// A block as the map knows it; id 0: unknown.
struct live_block {
    uint32_t id;
    uint64_t size;
};

enum { LIVE_KEY_SHIFT = 35, LIVE_ODD_BIT = 25, LIVE_PAGE_SHIFT = 12 };

bool live_init(bool is_wide);

// The leaf for the address, made if there is none; NULL without memory.
void *live_leaf_make_slow(uintptr_t address);

ALWAYS_INLINE uint64_t live_key(uintptr_t address) {
    uint64_t key = address >> LIVE_LEAF_SHIFT;
    return live.is_wide ? key | (address >> 3 & 1) << LIVE_ODD_BIT : key;
}

// The leaf for the address, or NULL.
ALWAYS_INLINE void *live_leaf(uintptr_t address) {
    const uint64_t mask = (1u << LIVE_TABLE_BITS) - 1;
    const uint64_t page_bits = (1ull << LIVE_KEY_SHIFT) - 1;
    uint64_t key = live_key(address);
    for (uint64_t i = key & mask;; i = (i + 1) & mask) {
        uint64_t word = __atomic_load_n(&live.table[i], __ATOMIC_ACQUIRE);
        if (likely(word >> LIVE_KEY_SHIFT == key && word))
            return (void *)((word & page_bits) << LIVE_PAGE_SHIFT);
        if (!word) return NULL;
    }
}

ALWAYS_INLINE uint32_t *live_narrow_slot(void *leaf, uintptr_t address) {
    const uintptr_t mask = (1u << (LIVE_LEAF_SHIFT - LIVE_NARROW_SHIFT)) - 1;
    return (uint32_t *)leaf + (address >> LIVE_NARROW_SHIFT & mask);
}

ALWAYS_INLINE uint64_t *live_wide_slot(void *leaf, uintptr_t address) {
    const uintptr_t mask = (1u << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT)) - 1;
    return (uint64_t *)leaf + (address >> LIVE_WIDE_SHIFT & mask);
}

// glibc: usable bytes of a block, from the chunk header before it.
ALWAYS_INLINE uint64_t live_usable(uintptr_t address) {
    uint64_t header = *(const uint64_t *)(address - 8);
    const uint64_t flags = 7, is_mmapped = 2;
    return (header & ~flags) - (header & is_mmapped ? 16 : 8);
}

ALWAYS_INLINE uint32_t live_narrow_word(uintptr_t address, uint32_t id, uint32_t slack) {
    return id << LIVE_ID_SHIFT | (uint32_t)(address >> 4 & 1) << LIVE_HALF_SHIFT | slack;
}

// Enters a block. `stale` gets what the slot held: nonzero id if the free of an older block at this
// address was never seen. False: no memory, the block stays unknown.
bool live_insert_rare(uintptr_t address, uint32_t id, uint64_t size, struct live_block *stale);
struct live_block live_take_rare(uintptr_t address);

ALWAYS_INLINE bool live_insert(uintptr_t address, uint32_t id, uint64_t size,
                               struct live_block *stale) {
    if (likely(!live.is_wide)) {
        void *leaf = live_leaf(address);
        uint64_t slack = live_usable(address) - size;
        if (likely(leaf && slack < LIVE_SLACK_ESCAPE)) {
            uint32_t *slot = live_narrow_slot(leaf, address);
            if (likely(*slot == 0)) {
                *slot = live_narrow_word(address, id, (uint32_t)slack);
                return true;
            }
        }
    }
    return live_insert_rare(address, id, size, stale);
}

// Takes a block out; id 0 if it was not there.
ALWAYS_INLINE struct live_block live_take(uintptr_t address) {
    if (likely(!live.is_wide)) {
        void *leaf = live_leaf(address);
        if (unlikely(!leaf)) return (struct live_block){0, 0};
        uint32_t *slot = live_narrow_slot(leaf, address);
        uint32_t word = *slot;
        uint32_t slack = word & LIVE_SLACK_ESCAPE;
        if (likely(slack != LIVE_SLACK_ESCAPE)) {
            *slot = 0;
            if (unlikely(!word)) return (struct live_block){0, 0};
            return (struct live_block){word >> LIVE_ID_SHIFT, live_usable(address) - slack};
        }
    }
    return live_take_rare(address);
}

// Calls `visit` for every block. Only while no other thread runs (a forked child). Sizes of narrow
// slots are read from the blocks' headers.
void live_each(void (*visit)(void *context, uint32_t id, uint64_t size), void *context);

// Bytes of leaves that exist but were never touched.
uint64_t live_untouched_bytes(void);

#endif
