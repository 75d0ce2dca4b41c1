// SPDX-License-Identifier: Apache-2.0
#include "tool/model/residency.h"

#include <stdlib.h>

// One pass over ranges and blocks, both by address.
struct sweep {
    struct residency *residency;
    const struct residency_block *blocks;
    size_t count;
    size_t first;  // block that may reach the page at hand
};

static uint64_t end_of(const struct residency_block *block) {
    return block->address + (block->size ? block->size : 1);
}

// What a block has of the page at `page`.
static uint64_t overlap(const struct residency_block *block, uint64_t page) {
    uint64_t from = block->address, to = end_of(block);
    if (from < page) from = page;
    if (to > page + RESIDENCY_PAGE_BYTES) to = page + RESIDENCY_PAGE_BYTES;
    return to > from ? to - from : 0;
}

// Blocks that overlap, as in a heap in mid-update, may add up to more than a page.
static uint64_t live_on(const struct sweep *sweep, uint64_t page, bool *is_alone) {
    uint64_t sum = 0;
    *is_alone = true;
    for (size_t i = sweep->first; i < sweep->count; i++) {
        const struct residency_block *block = &sweep->blocks[i];
        if (block->address >= page + RESIDENCY_PAGE_BYTES) break;
        uint64_t bytes = overlap(block, page);
        if (bytes && block->owner != sweep->blocks[sweep->first].owner) *is_alone = false;
        sum += bytes;
    }
    return sum;
}

// Shares are rounded so that they add up to the page.
static void charge(const struct sweep *sweep, uint64_t page, uint64_t sum, bool is_alone) {
    uint64_t before = 0, charged = 0;
    for (size_t i = sweep->first; i < sweep->count; i++) {
        const struct residency_block *block = &sweep->blocks[i];
        if (block->address >= page + RESIDENCY_PAGE_BYTES) break;
        struct residency_owner *owner = &sweep->residency->owners[block->owner];
        before += overlap(block, page);
        uint64_t until = before * RESIDENCY_PAGE_BYTES / sum;
        owner->kept_bytes += until - charged;
        owner->estimated_bytes += (double)block->weight * (double)(until - charged);
        if (is_alone) owner->alone_bytes += until - charged;
        charged = until;
    }
}

static void look_at_page(struct sweep *sweep, uint64_t page, bool is_resident, uint16_t *live) {
    struct residency *residency = sweep->residency;
    bool is_alone;
    while (sweep->first < sweep->count && end_of(&sweep->blocks[sweep->first]) <= page)
        sweep->first++;
    *live = RESIDENCY_ABSENT;
    if (!is_resident) return;
    uint64_t sum = live_on(sweep, page, &is_alone);
    *live = (uint16_t)(sum < RESIDENCY_PAGE_BYTES ? sum : RESIDENCY_PAGE_BYTES);
    residency->resident_bytes += RESIDENCY_PAGE_BYTES;
    residency->live_bytes += *live;
    if (!sum) return;
    residency->kept_bytes += RESIDENCY_PAGE_BYTES;
    charge(sweep, page, sum, is_alone);
}

// Blocks between the end of one range and the start of the next lie in none.
static void skip_to(struct sweep *sweep, uint64_t end, uint64_t start) {
    for (; sweep->first < sweep->count && end_of(&sweep->blocks[sweep->first]) <= start;
         sweep->first++)
        if (sweep->blocks[sweep->first].address >= end) sweep->residency->outside_blocks++;
}

// Moves the blocks that count to the front, in their order, and adds up their owners' sums. Returns
// how many they are.
static size_t choose_blocks(struct residency *residency, struct residency_block *blocks,
                            size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].owner >= residency->owner_count) continue;
        residency->owners[blocks[i].owner].blocks++;
        residency->owners[blocks[i].owner].live_bytes += blocks[i].size;
        blocks[kept++] = blocks[i];
    }
    return kept;
}

static bool make_pages(struct residency *residency, const struct residency_range *ranges,
                       size_t range_count) {
    for (size_t i = 0; i < range_count; i++)
        residency->range_bytes += ranges[i].end - ranges[i].start;
    size_t count = residency->range_bytes / RESIDENCY_PAGE_BYTES;
    residency->pages.items = malloc((count + 1) * sizeof *residency->pages.items);
    residency->pages.count = residency->pages.capacity = residency->pages.items ? count : 0;
    return residency->pages.items != NULL;
}

bool residency_build(struct residency *residency, const struct residency_range *ranges,
                     size_t range_count, struct residency_block *blocks, size_t block_count,
                     size_t owner_count, struct error *error) {
    *residency = (struct residency){.owner_count = owner_count};
    residency->owners = calloc(owner_count + 1, sizeof *residency->owners);
    if (!residency->owners || !make_pages(residency, ranges, range_count)) {
        residency_free(residency);
        return error_set(error, "no memory for the list of pages");
    }
    struct sweep sweep = {.residency = residency, .blocks = blocks};
    sweep.count = choose_blocks(residency, blocks, block_count);
    uint16_t *live = residency->pages.items;
    for (size_t i = 0; i < range_count; i++) {
        const struct residency_range *range = &ranges[i];
        size_t pages = (range->end - range->start) / RESIDENCY_PAGE_BYTES;
        skip_to(&sweep, i ? ranges[i - 1].end : 0, range->start);
        for (size_t k = 0; k < pages; k++)
            look_at_page(&sweep, range->start + k * RESIDENCY_PAGE_BYTES,
                         !range->are_resident || range->are_resident[k], live++);
    }
    skip_to(&sweep, range_count ? ranges[range_count - 1].end : 0, UINT64_MAX);
    return true;
}

void residency_free(struct residency *residency) {
    free(residency->owners);
    residency->owners = NULL;
    array_free(&residency->pages);
}

struct ranked {
    uint64_t bytes;
    uint32_t owner;
};

static int compare_kept(const void *a, const void *b) {
    const struct ranked *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return (left->owner > right->owner) - (left->owner < right->owner);
}

uint32_t *residency_rank(const struct residency *residency, size_t *count) {
    struct ranked *list = malloc((residency->owner_count + 1) * sizeof *list);
    uint32_t *ranking = malloc((residency->owner_count + 1) * sizeof *ranking);
    *count = 0;
    for (size_t i = 0; list && ranking && i < residency->owner_count; i++)
        if (residency->owners[i].kept_bytes)
            list[(*count)++] = (struct ranked){residency->owners[i].kept_bytes, (uint32_t)i};
    if (list && *count) qsort(list, *count, sizeof *list, compare_kept);
    for (size_t i = 0; i < *count; i++) ranking[i] = list[i].owner;
    if (!list) {
        free(ranking);
        ranking = NULL;
    }
    free(list);
    return ranking;
}
