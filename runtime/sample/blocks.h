// SPDX-License-Identifier: Apache-2.0
// The sampled blocks that are live: block address -> (size, rate, cell), bounded. Beside it a
// filter that tells the free of a block that was not sampled by one load: 2^16 counters of 8 bits,
// by a hash of the address, each the number of sampled blocks that have it. A counter that has
// reached its highest value stays there.
//
// A block has two places, each a row of ROW_ENTRIES entries, so nothing moves and no entry has to
// be left as a marker of a deleted one. Entries of a key (the inverted address, so that leak
// scanners take it for no pointer): 0 free, lowest bit set: complete, clear: somebody is at work on
// it. Who allocates or frees a block is the only one with that address; the one other party is
// whoever thins the table, and both take an entry by compare-and-exchange. A party that finds the
// entry at work gives way for a while and then goes on: the other one may be gone for good, by a
// jump out of a signal handler.
//
// No locks, any thread; a signal handler that interrupts a call finds the gate BUSY and stays out.
// Private memory: a forked child has its own copy.
#ifndef RUNTIME_SAMPLE_BLOCKS_H
#define RUNTIME_SAMPLE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

enum { FILTER_BITS = 16 };

struct sampled {
    uint64_t size_bytes, rate_bytes;
    uint32_t cell;
};

extern HIDDEN uint8_t blocks_filter[1 << FILTER_BITS];  // (atomic)

// The golden ratio's factor for addresses in units of 16 bytes, which most blocks lie at.
ALWAYS_INLINE uint32_t filter_place(const void *block) {
    return (uint32_t)((uintptr_t)block * (0x9E3779B97F4A7C15u >> 4) >> (64 - FILTER_BITS));
}

// From now on blocks_may_have says true of this one, in the table or not: a block that the
// allocator must not be given goes the long way.
void blocks_suspect(const void *block);

// False: the block is certainly not in the table.
ALWAYS_INLINE bool blocks_may_have(const void *block) {
    return __atomic_load_n(&blocks_filter[filter_place(block)], __ATOMIC_RELAXED) != 0;
}

// Makes an empty table for `max_samples` blocks at a time (more fit). False without memory.
bool blocks_init(uint64_t max_samples);
// Gives its memory back, in a process that samples nothing any more.
void blocks_release(void);
// Where the table is for readers from outside (struct cairn_live_samples); it stays there.
uintptr_t blocks_place(void);
// Blocks that it can hold.
uint64_t blocks_capacity(void);
// Memory that it has taken.
uint64_t blocks_touched_bytes(void);
// Blocks there are now.
uint64_t blocks_count(void);

// Enters a block that is not in it. False: no room.
bool blocks_insert(const void *block, const struct sampled *sampled);

// Takes a block out; false: it was not there.
bool blocks_take(const void *block, struct sampled *sampled);

// What blocks_each does with an entry.
enum blocks_fate { BLOCKS_KEEP, BLOCKS_DROP };

// Calls `visit` for each block; it may change size, rate and cell.
typedef enum blocks_fate blocks_visit(void *context, const void *block, struct sampled *sampled);
void blocks_each(blocks_visit *visit, void *context);

// In a forked child: forgets the entries that other threads had at work, of which there is at most
// one each.
void blocks_recover(void);

#endif
