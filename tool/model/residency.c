// SPDX-License-Identifier: Apache-2.0
#include "tool/model/residency.h"

#include <stdlib.h>
#include <string.h>

// One pass over ranges and blocks, both by address. Of the blocks those are at hand that may reach
// the page that is looked at, or one behind it.
struct sweep {
    struct residency *residency;
    const struct residency_blocks *blocks;
    ARRAY(struct residency_block) window;
    size_t first;  // of the window: it may reach the page
    bool is_over;  // there are no more blocks than those at hand
    bool is_bad;   // no memory
};
enum { WINDOW_GONE_MAX = 4096 };  // blocks in front of the first that stay in the window

static uint64_t end_of(const struct residency_block *block) {
    return block->address + (block->size ? block->size : 1);
}

// What a block has of the page at `page`.
static uint64_t overlap(const struct residency_block *block, uint64_t page, uint64_t page_bytes) {
    uint64_t from = block->address, to = end_of(block);
    if (from < page) from = page;
    if (to > page + page_bytes) to = page + page_bytes;
    return to > from ? to - from : 0;
}

// --- blocks

static bool make_owners(struct residency *residency, size_t count) {
    if (count <= residency->owner_count) return true;
    size_t room = residency->owner_room;
    if (count > room) room = 2 * room > count ? 2 * room : count;
    if (room > residency->owner_room) {
        struct residency_owner *owners = reallocarray(residency->owners, room, sizeof *owners);
        if (!owners) return false;
        residency->owners = owners;
        residency->owner_room = room;
    }
    memset(&residency->owners[residency->owner_count], 0,
           (count - residency->owner_count) * sizeof *residency->owners);
    residency->owner_count = count;
    return true;
}

static bool take(struct sweep *sweep, const struct residency_block *block) {
    struct residency *residency = sweep->residency;
    struct residency_block *slot = array_push(&sweep->window);
    if (!slot || !make_owners(residency, (size_t)block->owner + 1)) return false;
    *slot = *block;
    residency->owners[block->owner].blocks++;
    residency->owners[block->owner].live_bytes += block->size;
    return true;
}

static void drop_gone(struct sweep *sweep) {
    struct residency_block *items = sweep->window.items;
    if (sweep->first < sweep->window.count && sweep->first < WINDOW_GONE_MAX) return;
    sweep->window.count -= sweep->first;
    if (sweep->window.count)
        memmove(items, items + sweep->first, sweep->window.count * sizeof *items);
    sweep->first = 0;
}

// Block number `index` of the window, brought if it is the next one; NULL: there is none.
static const struct residency_block *block_at(struct sweep *sweep, size_t index) {
    struct residency_block block;
    if (index >= sweep->window.count) {
        if (sweep->is_over) return NULL;
        bool is_there = sweep->blocks->next(sweep->blocks->context, &block);
        if (is_there && !take(sweep, &block)) sweep->is_bad = true;
        sweep->is_over = !is_there || sweep->is_bad;
        if (sweep->is_over) return NULL;
    }
    return &sweep->window.items[index];
}

// The first that ends behind an address.
static const struct residency_block *first_behind(struct sweep *sweep, uint64_t address) {
    const struct residency_block *block;
    drop_gone(sweep);
    while ((block = block_at(sweep, sweep->first)) && end_of(block) <= address) sweep->first++;
    return block;
}

// --- pages

// Blocks that overlap, as in a heap in mid-update, may add up to more than a page.
static uint64_t live_on(struct sweep *sweep, uint64_t page, bool *is_alone) {
    const uint64_t page_bytes = sweep->residency->page_bytes;
    const struct residency_block *block;
    uint64_t sum = 0;
    *is_alone = true;
    for (size_t i = sweep->first; (block = block_at(sweep, i)); i++) {
        if (block->address >= page + page_bytes) break;
        uint64_t bytes = overlap(block, page, page_bytes);
        if (bytes && block->owner != sweep->window.items[sweep->first].owner) *is_alone = false;
        sum += bytes;
    }
    return sum;
}

// Shares are rounded so that they add up to the page.
static void charge(const struct sweep *sweep, uint64_t page, uint64_t sum, bool is_alone) {
    const uint64_t page_bytes = sweep->residency->page_bytes;
    uint64_t before = 0, charged = 0;
    for (size_t i = sweep->first; i < sweep->window.count; i++) {
        const struct residency_block *block = &sweep->window.items[i];
        if (block->address >= page + page_bytes) break;
        struct residency_owner *owner = &sweep->residency->owners[block->owner];
        before += overlap(block, page, page_bytes);
        uint64_t until = before * page_bytes / sum;
        owner->kept_bytes += until - charged;
        owner->estimated_bytes += (double)block->weight * (double)(until - charged);
        if (is_alone) owner->alone_bytes += until - charged;
        charged = until;
    }
}

static void look_at_page(struct sweep *sweep, uint64_t page, bool is_resident, uint32_t *live) {
    struct residency *residency = sweep->residency;
    const uint64_t page_bytes = residency->page_bytes;
    bool is_alone;
    first_behind(sweep, page);
    *live = RESIDENCY_ABSENT;
    if (!is_resident) return;
    uint64_t sum = live_on(sweep, page, &is_alone);
    *live = (uint32_t)(sum < page_bytes ? sum : page_bytes);
    residency->resident_bytes += page_bytes;
    residency->live_bytes += *live;
    if (!sum) return;
    residency->kept_bytes += page_bytes;
    charge(sweep, page, sum, is_alone);
}

// Blocks between the end of one range and the start of the next lie in none.
static void skip_to(struct sweep *sweep, uint64_t end, uint64_t start) {
    const struct residency_block *block;
    for (; (block = block_at(sweep, sweep->first)) && end_of(block) <= start; sweep->first++) {
        if (block->address >= end) sweep->residency->outside_blocks++;
        drop_gone(sweep);
    }
}

static bool make_pages(struct residency *residency, const struct residency_range *ranges,
                       size_t range_count) {
    for (size_t i = 0; i < range_count; i++)
        residency->range_bytes += ranges[i].end - ranges[i].start;
    size_t count = residency->range_bytes / residency->page_bytes;
    residency->pages.items = malloc((count + 1) * sizeof *residency->pages.items);
    residency->pages.count = residency->pages.capacity = residency->pages.items ? count : 0;
    return residency->pages.items != NULL;
}

static void sweep_ranges(struct sweep *sweep, const struct residency_range *ranges, size_t count) {
    const uint64_t page_bytes = sweep->residency->page_bytes;
    uint32_t *live = sweep->residency->pages.items;
    for (size_t i = 0; i < count; i++) {
        const struct residency_range *range = &ranges[i];
        size_t pages = (range->end - range->start) / page_bytes;
        skip_to(sweep, i ? ranges[i - 1].end : 0, range->start);
        for (size_t k = 0; k < pages; k++)
            look_at_page(sweep, range->start + k * page_bytes,
                         !range->are_resident || range->are_resident[k], live++);
    }
    skip_to(sweep, count ? ranges[count - 1].end : 0, UINT64_MAX);
}

bool residency_build(struct residency *residency, uint64_t page_bytes,
                     const struct residency_range *ranges, size_t range_count,
                     const struct residency_blocks *blocks, size_t owner_count,
                     struct error *error) {
    *residency = (struct residency){.page_bytes = page_bytes};
    struct sweep sweep = {.residency = residency, .blocks = blocks};
    bool is_ok =
        make_owners(residency, owner_count + 1) && make_pages(residency, ranges, range_count);
    residency->owner_count = is_ok ? owner_count : 0;
    if (is_ok) sweep_ranges(&sweep, ranges, range_count);
    array_free(&sweep.window);
    if (is_ok && !sweep.is_bad) return true;
    residency_free(residency);
    return error_set(error, "no memory for the list of pages");
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
