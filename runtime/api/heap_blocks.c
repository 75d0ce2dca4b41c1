// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/heap_blocks.h"

#include "runtime/stack/block_stats.h"

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

void heap_blocks_add_other(struct cairn_heap_stack *entry, uint32_t number, uint64_t bytes) {
    struct cairn_sizes *sizes = sizes_of(entry);
    if (!sizes) sizes = sizes_begin(entry, number);
    if (!sizes) return;
    block_stats_add_size(sizes, entry->calls, bytes);
}

void heap_blocks_drop_other(struct cairn_heap_stack *entry, uint64_t bytes) {
    struct cairn_sizes *sizes = sizes_of(entry);
    if (sizes) block_stats_drop_size(sizes, bytes);
}

static struct cairn_ages *ages_of(const struct cairn_heap_stack *entry) {
    return entry->ages ? block_stats_ages(entry->ages) : NULL;
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
    block_stats_add_age(ages, calls, ms);
}

void heap_blocks_drop_age(const struct cairn_heap_stack *entry, uint32_t calls, uint32_t ms) {
    struct cairn_ages *ages = ages_of(entry);
    if (ages) block_stats_drop_age(ages, calls, ms);
}
