// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack/block_stats.h"

struct uses uses;

enum { HIGH_SHIFT = 32 };

// Sizes are counted as in "Efficient computation of frequent and top-k elements in data streams"
// (Metwally and others, 2005): a size without a place takes that of the rarest one and inherits its
// count as its error, so that the most frequent sizes get a place and keep it. Here one in so many
// calls does so, chosen by a hash: what is known of sizes that are alike frequent is not thrown
// away all the time.
enum { SIZES_EXCHANGE_BITS = 5 };

static uint64_t calls_of(uint32_t id) {
    const struct cairn_cell_rare *rare = cell_rare(id);
    return (rare ? (uint64_t)rare->calls_high << HIGH_SHIFT : 0) | cells.items[id].calls;
}

// An entry of a section of such entries, and its number + 1; 0: no room.
static uint32_t entry_take(struct region *region, uint64_t entry_bytes, void **entry) {
    uint8_t *taken = region_take(region, entry_bytes);
    *entry = taken;
    return taken ? (uint32_t)((uint64_t)(taken - region->base) / entry_bytes) + 1 : 0;
}

// The first size that is not the usual one, or one of a cell that was not busy yet; its present
// call is counted already. NULL: not counted.
static COLD struct cairn_sizes *sizes_begin(uint32_t id) {
    struct cairn_cell *cell = &cells.items[id];
    uint64_t calls = calls_of(id);
    void *entry = NULL;
    uint32_t number = 0;
    struct cairn_cell_rare *rare = calls >= SIZES_BUSY_CALLS ? cell_rare_make(id) : NULL;
    if (rare) number = entry_take(&uses.sizes, sizeof(struct cairn_sizes), &entry);
    if (!number) {
        cell->size = CAIRN_SIZE_VARIES;
        return NULL;
    }
    struct cairn_sizes *sizes = entry;
    sizes->cell = id;
    sizes->unknown_calls = cell->size == CAIRN_SIZE_VARIES ? calls - 1 : 0;
    publish_barrier();
    rare->sizes = number;
    return sizes;
}

static uint64_t *bucket_of(struct cairn_sizes *sizes, uint64_t size) {
    unsigned bits = size ? 64 - (unsigned)__builtin_clzll(size) : 0;
    return &sizes->buckets[bits < CAIRN_SIZES_BUCKETS ? bits : CAIRN_SIZES_BUCKETS - 1];
}

static unsigned place_free(const struct cairn_sizes *sizes) {
#pragma GCC unroll 8
    for (unsigned place = 0; place < CAIRN_SIZES_EXACT; place++)
        if (unlikely(sizes->counts[place] == 0)) return place;
    return CAIRN_SIZES_EXACT;
}

// The place of a size, else one that is free, else CAIRN_SIZES_EXACT.
ALWAYS_INLINE unsigned place_of(const struct cairn_sizes *sizes, uint64_t size) {
    if (unlikely(size > UINT32_MAX)) return CAIRN_SIZES_EXACT;
    for (unsigned like = block_stats_places_like(sizes, (uint32_t)size); like; like &= like - 1) {
        unsigned place = (unsigned)__builtin_ctz(like);
        if (likely(sizes->counts[place])) return place;
    }
    return place_free(sizes);
}

static bool is_exchange_due(uint64_t calls) {
    const uint32_t golden = 2654435769u;  // 2^32 over the golden ratio
    return (uint32_t)calls * golden >> (32 - SIZES_EXCHANGE_BITS) == 0;
}

static uint64_t most_of(const struct cairn_sizes *sizes, unsigned place) {
    return sizes->counts[place] + sizes->errors[place];
}

// Gives the place of the rarest size to this one.
static COLD unsigned exchange(struct cairn_sizes *sizes, uint64_t size) {
    unsigned rarest = 0;
    for (unsigned i = 1; i < CAIRN_SIZES_EXACT; i++)
        if (most_of(sizes, i) < most_of(sizes, rarest)) rarest = i;
    uint64_t most = most_of(sizes, rarest);
    *bucket_of(sizes, sizes->sizes[rarest]) += sizes->counts[rarest];
    sizes->counts[rarest] = 0;
    publish_barrier();
    sizes->errors[rarest] = most;
    sizes->sizes[rarest] = (uint32_t)size;
    publish_barrier();
    sizes->counts[rarest] = 1;
    return rarest;
}

// Blocks of that size may be in its bucket from when it had no place.
static COLD void place_begin(struct cairn_sizes *sizes, unsigned place, uint64_t size) {
    sizes->errors[place] = *bucket_of(sizes, size);
    sizes->sizes[place] = (uint32_t)size;
}

ALWAYS_INLINE unsigned add_size(struct cairn_sizes *sizes, uint64_t calls, uint64_t size) {
    unsigned place = place_of(sizes, size);
    if (unlikely(place == CAIRN_SIZES_EXACT)) {
        if (is_exchange_due(calls) && size <= UINT32_MAX) return exchange(sizes, size);
        ++*bucket_of(sizes, size);
        return place;
    }
    if (unlikely(sizes->counts[place] == 0)) place_begin(sizes, place, size);
    publish_barrier();
    sizes->counts[place]++;
    return place;
}

unsigned block_stats_add_size(struct cairn_sizes *sizes, uint64_t calls, uint64_t size) {
    return add_size(sizes, calls, size);
}

void block_stats_drop_size(struct cairn_sizes *sizes, uint64_t size) {
    unsigned place = place_of(sizes, size);
    uint64_t *count = place < CAIRN_SIZES_EXACT && sizes->counts[place] ? &sizes->counts[place]
                                                                        : bucket_of(sizes, size);
    if (*count) --*count;
}

// The size in this place, all of whose blocks are counted, has become more frequent than the usual
// one: it changes places with it.
static COLD bool turn(uint32_t id, struct cairn_sizes *sizes, unsigned place) {
    uint64_t others = sizes->unknown_calls, calls = calls_of(id);
    for (unsigned i = 0; i < CAIRN_SIZES_EXACT; i++) others += sizes->counts[i];
    for (unsigned i = 0; i < CAIRN_SIZES_BUCKETS; i++) others += sizes->buckets[i];
    if (others > calls || calls - others >= sizes->counts[place]) return false;
    uint32_t usual = cells.items[id].size;
    cells.items[id].size = sizes->sizes[place];
    sizes->sizes[place] = usual;
    sizes->counts[place] = calls - others;
    return true;
}

bool block_stats_count_size_in(uint32_t id, struct cairn_sizes *sizes, uint64_t size) {
    unsigned place = add_size(sizes, cells.items[id].calls, size);
    if (unlikely(place == CAIRN_SIZES_EXACT)) return false;
    bool is_exact = !sizes->errors[place];
    if (likely(sizes->counts[place] % SIZES_TURN_EVERY) || !is_exact) return false;
    return turn(id, sizes, place);
}

bool block_stats_count_later_size(uint32_t id, uint64_t size) {
    struct cairn_sizes *sizes = block_stats_sizes(id);
    if (!sizes) sizes = sizes_begin(id);
    return sizes ? block_stats_count_size_in(id, sizes, size) : true;
}

// What is older than the last bucket is counted there.
static uint32_t calls_bounded(uint32_t calls) {
    return calls < USE_AGE_MOST ? calls : USE_AGE_MOST;
}

// No block of a recording is 25 days old, but a look at a clock that another thread or the kernel
// moves meanwhile may give a little less than nothing.
static uint32_t ms_bounded(uint32_t ms) {
    return ms <= USE_AGE_MOST ? ms : 0;
}

void block_stats_add_age(struct cairn_ages *ages, uint32_t calls, uint32_t ms) {
    if (calls != USE_NO_CALLS) block_stats_age_count(ages->calls, calls_bounded(calls));
    block_stats_age_count(ages->ms, ms_bounded(ms));
}

static void uncount(uint32_t *buckets, uint32_t age) {
    uint32_t *bucket = block_stats_age_bucket(buckets, age);
    if (*bucket) --*bucket;
}

void block_stats_drop_age(struct cairn_ages *ages, uint32_t calls, uint32_t ms) {
    if (calls != USE_NO_CALLS) uncount(ages->calls, calls_bounded(calls));
    uncount(ages->ms, ms_bounded(ms));
}

void block_stats_count_age(uint32_t id, uint32_t calls, uint32_t ms) {
    struct cairn_cell_rare *rare = cell_rare_make(id);
    if (!rare) return;
    struct cairn_ages *entry = block_stats_ages(rare->ages);
    if (unlikely(!rare->ages)) {
        void *taken;
        uint32_t number = entry_take(&uses.ages, sizeof *entry, &taken);
        if (!number) return;
        entry = taken;
        entry->cell = id;
        publish_barrier();
        rare->ages = number;
    }
    block_stats_add_age(entry, calls, ms);
}

// The section's padding to whole pages may hold more.
void block_stats_count_aligned(uint32_t id, uint64_t alignment, uint64_t slack, uint64_t waste) {
    struct cairn_cell_rare *rare = cell_rare_make(id);
    if (!rare) return;
    struct cairn_aligned *entry = (struct cairn_aligned *)uses.aligned.base + rare->aligned - 1;
    const unsigned first_bits = 5;  // of the first alignment beyond CAIRN_ALIGN_PLAIN
    unsigned bits = 64 - (unsigned)__builtin_clzll(alignment - 1), bucket = bits - first_bits;
    if (unlikely(!rare->aligned)) {
        void *taken;
        uint32_t number = entry_take(&uses.aligned, sizeof *entry, &taken);
        if (!number || number > CAIRN_ALIGNED_LIMIT) return;
        entry = taken;
        entry->cell = id;
        publish_barrier();
        rare->aligned = number;
    }
    entry->calls[bucket < CAIRN_ALIGN_BUCKETS ? bucket : CAIRN_ALIGN_BUCKETS - 1]++;
    entry->slack_bytes += slack;
    entry->waste_bytes += waste;
}

void block_stats_count_realloc(uint32_t id, uint64_t old_size, uint64_t size,
                               enum realloc_way way) {
    struct cairn_cell_rare *rare = cell_rare_make(id);
    if (!rare) return;
    struct cairn_reallocs *entry = (struct cairn_reallocs *)uses.reallocs.base + rare->reallocs - 1;
    if (unlikely(!rare->reallocs)) {
        void *taken;
        uint32_t number = entry_take(&uses.reallocs, sizeof *entry, &taken);
        if (!number) return;
        entry = taken;
        entry->cell = id;
        publish_barrier();
        rare->reallocs = number;
    }
    block_stats_add_realloc(entry, old_size, size, way);
}
