// SPDX-License-Identifier: Apache-2.0
// What the blocks of a cell are like: room beyond what was asked for, sizes, reallocations, and how
// many were freed before the next allocation. Nothing here is known of CAIRN_CELL_OTHER.
//
// Most stacks allocate one size. That is kept in the cell, and its number is not counted: it is
// what is left of the cell's calls. Only where another size comes is something looked up, in an
// entry that a cell gets when it has proved busy (SIZES_BUSY_CALLS).
//
// One writer, the thread that owns the cell. Whatever interrupts a change for good leaves a number
// that is at most one event off.
#ifndef RUNTIME_STACK_BLOCK_STATS_H
#define RUNTIME_STACK_BLOCK_STATS_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "runtime/stack/cells.h"

enum { SIZES_BUSY_CALLS = 32 };
// A size with a place may become the usual one when its count passes a multiple of this.
enum { SIZES_TURN_EVERY = 256 };

struct uses {
    struct region sizes, reallocs, aligned, ages;
};

extern HIDDEN struct uses uses;

// Counts a block, of which the cell's calls know already, whose size is not its usual one. True:
// that is the usual one now, as it is with the first block, or none is any more.
bool block_stats_count_later_size(uint32_t id, uint64_t size);
// The same where the cell's other sizes are counted there.
bool block_stats_count_size_in(uint32_t id, struct cairn_sizes *sizes, uint64_t size);
ALWAYS_INLINE bool block_stats_count_other_size(uint32_t id, uint64_t size) {
    struct cairn_cell *cell = &cells.items[id];
    bool is_first = cell->calls == 1 && (!cell->rare || cells.rare[cell->rare - 1].calls_high == 0);
    if (!is_first || size > UINT32_MAX) return block_stats_count_later_size(id, size);
    cell->size = (uint32_t)size;
    return true;
}

// Where the cell's other sizes are counted; NULL: nowhere yet. It stays there.
ALWAYS_INLINE struct cairn_sizes *block_stats_sizes(uint32_t id) {
    const struct cairn_cell_rare *rare = cell_rare(id);
    return rare && rare->sizes ? (struct cairn_sizes *)uses.sizes.base + (rare->sizes - 1) : NULL;
}

// The places of an entry that hold a size, whether they are valid or not: a bit each.
#if defined(__SSE2__)
ALWAYS_INLINE unsigned block_stats_places_like(const struct cairn_sizes *sizes, uint32_t size) {
    const __m128i wanted = _mm_set1_epi32((int)size);
    const __m128i *held = (const __m128i *)sizes->sizes;
    __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128(held), wanted);
    __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128(held + 1), wanted);
    __m128i all = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    return (unsigned)_mm_movemask_epi8(all);
}
#else
ALWAYS_INLINE unsigned block_stats_places_like(const struct cairn_sizes *sizes, uint32_t size) {
    unsigned places = 0;
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) places |= (sizes->sizes[i] == size) << i;
    return places;
}
#endif

// What block_stats_count_later_size does, of a size that has a place and does not become the usual
// one. False: it is another one, and nothing was done.
ALWAYS_INLINE bool block_stats_count_again(struct cairn_sizes *sizes, uint64_t size) {
    unsigned like = block_stats_places_like(sizes, (uint32_t)size);
    if (unlikely(!like) || unlikely(size > UINT32_MAX)) return false;
    uint64_t *count = &sizes->counts[__builtin_ctz(like)];
    if (unlikely(*count == 0) || unlikely(*count % SIZES_TURN_EVERY == SIZES_TURN_EVERY - 1))
        return false;
    ++*count;
    return true;
}

// The way realloc came to the new block: at the old address, by other addresses for the same pages,
// or by a copy.
enum realloc_way { REALLOC_IN_PLACE, REALLOC_REMAPPED, REALLOC_COPIED };

// A block of this cell was another one before, of `old_size` bytes.
void block_stats_count_realloc(uint32_t id, uint64_t old_size, uint64_t size, enum realloc_way way);
ALWAYS_INLINE void block_stats_add_realloc(struct cairn_reallocs *entry, uint64_t old_size,
                                           uint64_t size, enum realloc_way way) {
    entry->calls++;
    entry->grown += size > old_size;
    if (way == REALLOC_IN_PLACE)
        entry->in_place++;
    else if (way == REALLOC_COPIED)
        entry->copied_bytes += old_size < size ? old_size : size;
}
// The same without a call; false: the cell's first, and nothing was done.
ALWAYS_INLINE bool block_stats_count_realloc_again(const struct cairn_cell *cell, uint64_t old_size,
                                                   uint64_t size, enum realloc_way way) {
    uint32_t number = likely(cell->rare) ? cells.rare[cell->rare - 1].reallocs : 0;
    if (unlikely(!number)) return false;
    struct cairn_reallocs *entry = (struct cairn_reallocs *)uses.reallocs.base + (number - 1);
    block_stats_add_realloc(entry, old_size, size, way);
    return true;
}
// A block that was asked for with an alignment beyond CAIRN_ALIGN_PLAIN: the room behind what was
// asked for, and what it took beyond a plain block of its size, as far as they are known.
void block_stats_count_aligned(uint32_t id, uint64_t alignment, uint64_t slack, uint64_t waste);
// The age of a block that was freed: allocations of its thread since its own, USE_NO_CALLS if
// another thread freed it, and milliseconds.
#define USE_NO_CALLS UINT32_MAX
void block_stats_count_age(uint32_t id, uint32_t calls, uint32_t ms);

// The parts of that, for entries of stacks of another heap too (api/heap_blocks.h): a size that is
// not the usual one, of a stack that has made so many calls. Its place in the entry;
// CAIRN_SIZES_EXACT: a bucket has it. And that a block of such a size was none.
unsigned block_stats_add_size(struct cairn_sizes *sizes, uint64_t calls, uint64_t size);
void block_stats_drop_size(struct cairn_sizes *sizes, uint64_t size);

// The same of an age; `calls` may be USE_NO_CALLS.
void block_stats_add_age(struct cairn_ages *ages, uint32_t calls, uint32_t ms);
void block_stats_drop_age(struct cairn_ages *ages, uint32_t calls, uint32_t ms);

// The parts of that: an entry, by cairn_cell_rare.ages, and the count of an age in bounds.
enum { USE_AGE_MOST = INT32_MAX };
ALWAYS_INLINE struct cairn_ages *block_stats_ages(uint32_t number) {
    return (struct cairn_ages *)uses.ages.base + (number - 1);
}
// By the number of bits, and 0 for 0.
ALWAYS_INLINE uint32_t *block_stats_age_bucket(uint32_t *buckets, uint32_t age) {
    return &buckets[31 - __builtin_clz(2 * age + 1)];
}
ALWAYS_INLINE void block_stats_age_count(uint32_t *buckets, uint32_t age) {
    uint32_t *bucket = block_stats_age_bucket(buckets, age);
    if (unlikely(++*bucket == 0)) *bucket = UINT32_MAX;
}

// By the low 32 bits: sizes that differ by 4 GiB are the same stack's in no program.
ALWAYS_INLINE bool block_stats_has_usual_size(const struct cairn_cell *cell, uint64_t size) {
    return cell->size == (uint32_t)size;
}

#endif
