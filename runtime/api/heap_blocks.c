// SPDX-License-Identifier: Apache-2.0
// Sizes are counted as block_stats.c does it: a size that has no place takes that of the rarest
// one, one time in some, and what was counted there goes to the bucket of its bits.
#include "runtime/api/heap_blocks.h"

#include "runtime/stack/block_stats.h"

enum { EXCHANGE_BITS = 5 };

static struct cairn_sizes *sizes_of(const struct cairn_heap_stack *entry) {
    bool has_sizes = entry->sizes && entry->sizes != CAIRN_HEAP_NO_SIZES;
    return has_sizes ? (struct cairn_sizes *)uses.sizes.base + (entry->sizes - 1) : NULL;
}

static COLD struct cairn_sizes *sizes_begin(struct cairn_heap_stack *entry, uint32_t number) {
    struct cairn_sizes *sizes =
        entry->sizes || !uses.sizes.base ? NULL : region_take(&uses.sizes, sizeof *sizes);
    if (!sizes) {
        entry->sizes = CAIRN_HEAP_NO_SIZES;
        return NULL;
    }
    sizes->heap_stack = number;
    publish_barrier();
    entry->sizes = (uint32_t)(sizes - (struct cairn_sizes *)uses.sizes.base) + 1;
    return sizes;
}

static uint64_t *bucket_of(struct cairn_sizes *sizes, uint64_t bytes) {
    unsigned bits = bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
    return &sizes->buckets[bits < CAIRN_SIZES_BUCKETS ? bits : CAIRN_SIZES_BUCKETS - 1];
}

// The place of a size, else one that is free, else CAIRN_SIZES_EXACT.
static unsigned place_of(const struct cairn_sizes *sizes, uint64_t bytes) {
    unsigned place = CAIRN_SIZES_EXACT;
    if (bytes > UINT32_MAX) return place;
    for (unsigned i = CAIRN_SIZES_EXACT; i-- > 0;) {
        if (sizes->counts[i] && sizes->sizes[i] == (uint32_t)bytes) return i;
        if (!sizes->counts[i]) place = i;
    }
    return place;
}

static bool is_exchange_due(uint64_t calls) {
    const uint32_t golden = 2654435769u;  // 2^32 over the golden ratio
    return (uint32_t)calls * golden >> (32 - EXCHANGE_BITS) == 0;
}

static uint64_t most_of(const struct cairn_sizes *sizes, unsigned place) {
    return sizes->counts[place] + sizes->errors[place];
}

static COLD void exchange(struct cairn_sizes *sizes, uint64_t bytes) {
    unsigned rarest = 0;
    for (unsigned i = 1; i < CAIRN_SIZES_EXACT; i++)
        if (most_of(sizes, i) < most_of(sizes, rarest)) rarest = i;
    uint64_t most = most_of(sizes, rarest);
    *bucket_of(sizes, sizes->sizes[rarest]) += sizes->counts[rarest];
    sizes->counts[rarest] = 0;
    publish_barrier();
    sizes->errors[rarest] = most;
    sizes->sizes[rarest] = (uint32_t)bytes;
    publish_barrier();
    sizes->counts[rarest] = 1;
}

void heap_blocks_add_other(struct cairn_heap_stack *entry, uint32_t number, uint64_t bytes) {
    struct cairn_sizes *sizes = sizes_of(entry);
    if (!sizes) sizes = sizes_begin(entry, number);
    if (!sizes) return;
    unsigned place = place_of(sizes, bytes);
    if (place == CAIRN_SIZES_EXACT && bytes <= UINT32_MAX && is_exchange_due(entry->calls))
        return exchange(sizes, bytes);
    if (place == CAIRN_SIZES_EXACT) {
        ++*bucket_of(sizes, bytes);
        return;
    }
    if (!sizes->counts[place]) {
        // blocks of that size may be in its bucket from when it had no place
        sizes->errors[place] = *bucket_of(sizes, bytes);
        sizes->sizes[place] = (uint32_t)bytes;
        publish_barrier();
    }
    sizes->counts[place]++;
}

void heap_blocks_drop_other(struct cairn_heap_stack *entry, uint64_t bytes) {
    struct cairn_sizes *sizes = sizes_of(entry);
    if (!sizes) return;
    unsigned place = place_of(sizes, bytes);
    if (place < CAIRN_SIZES_EXACT && sizes->counts[place])
        sizes->counts[place]--;
    else if (*bucket_of(sizes, bytes))
        --*bucket_of(sizes, bytes);
}

static struct cairn_ages *ages_of(const struct cairn_heap_stack *entry) {
    return entry->ages ? block_stats_ages(entry->ages) : NULL;
}

static uint32_t calls_bounded(uint32_t calls) {
    return calls < USE_AGE_MOST ? calls : USE_AGE_MOST;
}

// Of a clock that may have gone back by a little.
static uint32_t ms_bounded(uint32_t ms) {
    return ms <= USE_AGE_MOST ? ms : 0;
}

void heap_blocks_count_age(struct cairn_heap_stack *entry, uint32_t number, uint32_t calls,
                           uint32_t ms) {
    struct cairn_ages *ages = ages_of(entry);
    if (unlikely(!ages)) {
        ages = uses.ages.base ? region_take(&uses.ages, sizeof *ages) : NULL;
        if (!ages) return;
        ages->heap_stack = number;
        publish_barrier();
        entry->ages = (uint32_t)(ages - (struct cairn_ages *)uses.ages.base) + 1;
    }
    block_stats_age_count(ages->calls, calls_bounded(calls));
    block_stats_age_count(ages->ms, ms_bounded(ms));
}

static void uncount(uint32_t *buckets, uint32_t age) {
    uint32_t *bucket = &buckets[31 - __builtin_clz(2 * age + 1)];
    if (*bucket) --*bucket;
}

void heap_blocks_drop_age(const struct cairn_heap_stack *entry, uint32_t calls, uint32_t ms) {
    struct cairn_ages *ages = ages_of(entry);
    if (!ages) return;
    uncount(ages->calls, calls_bounded(calls));
    uncount(ages->ms, ms_bounded(ms));
}
