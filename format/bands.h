// SPDX-License-Identifier: Apache-2.0
// How guard bands (guard.h) and the table of the blocks that have them lie in the memory of a
// recorded process. The runtime keeps the table (runtime/guard/bands.h explains it); the tool reads
// it where nobody in the process would look, since all of its threads wait for something.
//
//   tops     BANDS_TOPS pointers to mids, one each 64 GiB of address space
//   mid      BANDS_MIDS pointers to leaves, one each 4 MiB
//   leaf     entries, one each 32 bytes: what the block that begins there is like
//
//   what the allocator gave          what the program gets
//   │                                │
//   ├─ … up to the alignment ─┬ band ┼────── size bytes ──────┬ band ┤
#ifndef CAIRN_BANDS_H
#define CAIRN_BANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/guard.h"
#include "format/live_map.h"

enum { BANDS_TOPS = LIVE_TOP_COUNT, BANDS_MIDS = LIVE_MID_COUNT };
// Blocks with bands are at least 48 bytes apart.
enum { BANDS_GRANULE_SHIFT = 5, BANDS_GRANULE_HALF = 16 };
enum { BANDS_LEAF_ENTRIES = 1 << (LIVE_LEAF_SHIFT - BANDS_GRANULE_SHIFT) };

// Who may take the block: the program's thread that has it; nobody, while a thread looks at it;
// that thread, since it was freed meanwhile.
enum bands_state { BANDS_NONE = 0, BANDS_OWNED = 1, BANDS_CHECKED = 2, BANDS_LEFT = 3 };

// word: size << 16 | log2 of the alignment << 8 | BANDS_HALF | BANDS_TOLD | enum bands_state
enum { BANDS_STATE = 3, BANDS_TOLD = 4, BANDS_HALF = 8, BANDS_SIZE_SHIFT = 16 };
enum { BANDS_ALIGNMENT_SHIFT = 8, BANDS_ALIGNMENT_MASK = 0x3f };
#define BANDS_SIZE_LIMIT ((uint64_t)1 << (64 - BANDS_SIZE_SHIFT))

struct bands_entry {
    uint64_t word;  // (atomic) 0: the block has no bands
    uint32_t cell;  // that it was recorded for; 0: none
    uint32_t reserved;
};

// A block as its entry says.
struct bands_block {
    uintptr_t address;
    size_t size;
    size_t front_bytes;  // from what the allocator gave to the block
};

// From what the allocator gave to the block: the band, and what its alignment takes before it.
static inline size_t bands_front(size_t band_bytes, size_t alignment) {
    return (band_bytes + alignment - 1) & ~(alignment - 1);
}

static inline size_t bands_alignment(uint64_t word) {
    return (size_t)1 << (word >> BANDS_ALIGNMENT_SHIFT & BANDS_ALIGNMENT_MASK);
}

static inline struct bands_block bands_block_at(uintptr_t address, uint64_t word,
                                                size_t band_bytes) {
    return (struct bands_block){address, (size_t)(word >> BANDS_SIZE_SHIFT),
                                bands_front(band_bytes, bands_alignment(word))};
}

// The block of an entry, by the start of the entry's 32 bytes.
static inline uintptr_t bands_address(uintptr_t granule, uint64_t word) {
    return granule + (word & BANDS_HALF ? BANDS_GRANULE_HALF : 0);
}

// What an untouched band holds. No byte is 0, 0xff, ASCII or equal to the next one, and no eight of
// them are an address.
static inline void bands_paint(uint8_t pattern[CAIRN_GUARD_MOST]) {
    const unsigned first = 0x83, step = 37, range = 0x7a;
    for (unsigned i = 0; i < CAIRN_GUARD_MOST; i++)
        pattern[i] = (uint8_t)(first + i * step % range);
}

// One side: the byte next to the block is the last one of its band, or the first.
static inline void bands_compare_side(const uint8_t *band, const uint8_t *pattern,
                                      size_t band_bytes, bool is_before,
                                      struct cairn_overrun_side *side) {
    for (size_t i = 0; i < band_bytes; i++) {
        size_t at = is_before ? band_bytes - 1 - i : i;
        if (band[at] == pattern[at]) continue;
        uint32_t distance = (uint32_t)i + 1;
        if (!side->changed_bytes++) side->nearest = distance;
        side->farthest = distance;
    }
    size_t first = is_before ? band_bytes - side->farthest : side->nearest - 1;
    size_t length = side->farthest - side->nearest + 1;
    if (!side->changed_bytes) return;
    if (length > sizeof side->sample) length = sizeof side->sample;
    memcpy(side->sample, band + first, length);
}

// What has changed in a block's bands. True if anything; else `damage` is left alone.
static inline bool bands_differ(const struct bands_block *block, const uint8_t *before,
                                const uint8_t *behind, const uint8_t *pattern, size_t band_bytes,
                                struct cairn_overrun *overrun) {
    if (!memcmp(before, pattern, band_bytes) && !memcmp(behind, pattern, band_bytes)) return false;
    overrun->address = block->address;
    overrun->size = block->size;
    bands_compare_side(before, pattern, band_bytes, true, &overrun->before);
    bands_compare_side(behind, pattern, band_bytes, false, &overrun->behind);
    return overrun->before.changed_bytes || overrun->behind.changed_bytes;
}

#endif
