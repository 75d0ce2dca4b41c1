// SPDX-License-Identifier: Apache-2.0
#include "tool/core/leaks.h"

#include "tool/base/search.h"

static const uint64_t source_mask = UINT32_MAX;
enum { TARGET_SHIFT = 32 };

static bool note_pair(void *context, const struct core_word *word) {
    struct core_leaks *leaks = context;
    const struct block_map *map = &leaks->reach->map;
    uint64_t place;
    if (!block_map_find(map, word->value, &place) || place == word->from ||
        block_map_bits(map, place) & PLACE_MARKED)
        return true;
    uint64_t *slot = array_push(&leaks->pairs);
    if (slot)
        *slot = (uint64_t)core_graph_number(&leaks->graph, place) << TARGET_SHIFT |
                core_graph_number(&leaks->graph, word->from);
    return slot;
}

static int compare_pairs(const void *a, const void *b) {
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

bool core_leaks_open(const struct core_reach *reach, struct core_leaks *leaks) {
    *leaks = (struct core_leaks){.reach = reach};
    struct core_scan scan = {
        .core = reach->core, .map = &reach->map, .see = note_pair, .context = leaks};
    bool is_ok = core_graph_open(reach, &leaks->graph) && core_scan_open(&scan) &&
                 core_scan_leaked(reach, &scan);
    core_scan_close(&scan);
    if (leaks->pairs.count)
        qsort(leaks->pairs.items, leaks->pairs.count, sizeof *leaks->pairs.items, compare_pairs);
    return is_ok;
}

void core_leaks_close(struct core_leaks *leaks) {
    core_graph_close(&leaks->graph);
    array_free(&leaks->pairs);
}

// The first pair that is not less.
static size_t find_pair(const struct core_leaks *leaks, uint64_t pair) {
    size_t low;
    search_first(low, leaks->pairs.count, leaks->pairs.items[low] >= pair);
    return low;
}

bool core_leaks_to(struct core_leaks *leaks, uint64_t address, size_t most,
                   struct core_references *found, size_t *count) {
    const struct block_map *map = &leaks->reach->map;
    uint64_t place;
    bool is_ok = true;
    *found = (struct core_references){0};
    *count = 0;
    if (!block_map_find(map, address, &place)) return true;
    const uint64_t target = core_graph_number(&leaks->graph, place);
    size_t first = find_pair(leaks, target << TARGET_SHIFT);
    size_t end = find_pair(leaks, (target + 1) << TARGET_SHIFT);
    *count = end - first;
    for (size_t i = first; i < end && found->items.count < most && is_ok; i++) {
        uint64_t pair = leaks->pairs.items[i];
        if (i > first && pair == leaks->pairs.items[i - 1]) continue;  // found with the first
        is_ok = core_find_between(leaks->reach,
                                  core_graph_place(&leaks->graph, (uint32_t)(pair & source_mask)),
                                  place, most - found->items.count, found);
        core_looked_at(leaks->reach->core, CORE_FAR_BYTES, &leaks->places);
    }
    if (!is_ok) core_references_free(found);
    return is_ok;
}
