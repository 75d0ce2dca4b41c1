// SPDX-License-Identifier: Apache-2.0
#include "tool/core/graph.h"

enum { RANK_WORDS = 8, WORD_BITS = 64 };
static const uint64_t starts_of_places = 0x1111111111111111;

// --- numbers

// The first bit of each place where a block in use starts.
static uint64_t blocks_of(uint64_t word) {
    return word & word >> 1 & starts_of_places;
}

static uint32_t count_blocks(uint64_t word) {
    return (uint32_t)__builtin_popcountll(blocks_of(word));
}

uint32_t core_graph_number(const struct core_graph *graph, uint64_t place) {
    const uint64_t *words = graph->reach->map.words;
    uint64_t at = place / PLACES_PER_WORD, first = at / RANK_WORDS * RANK_WORDS;
    uint32_t number = graph->ranks[at / RANK_WORDS];
    for (uint64_t i = first; i < at; i++) number += count_blocks(words[i]);
    uint64_t before = ((uint64_t)1 << (place % PLACES_PER_WORD * PLACE_BITS)) - 1;
    return number + count_blocks(words[at] & before);
}

uint64_t core_graph_place(const struct core_graph *graph, uint32_t number) {
    const struct block_map *map = &graph->reach->map;
    uint64_t low = 0, high = (map->place_count / PLACES_PER_WORD + RANK_WORDS - 1) / RANK_WORDS;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (graph->ranks[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    uint64_t at = low * RANK_WORDS;
    uint32_t before = graph->ranks[low], here;
    for (; before + (here = count_blocks(map->words[at])) <= number; at++) before += here;
    uint64_t blocks = blocks_of(map->words[at]);
    for (; before < number; before++) blocks &= blocks - 1;
    return at * PLACES_PER_WORD + (unsigned)__builtin_ctzll(blocks) / PLACE_BITS;
}

bool core_graph_open(const struct core_reach *reach, struct core_graph *graph) {
    const struct block_map *map = &reach->map;
    uint64_t words = map->place_count / PLACES_PER_WORD;
    *graph = (struct core_graph){.reach = reach};
    graph->ranks = calloc(words / RANK_WORDS + 1, sizeof *graph->ranks);
    for (uint64_t i = 0; graph->ranks && i < words; i++) {
        if (i % RANK_WORDS == 0) graph->ranks[i / RANK_WORDS] = graph->count;
        graph->count += count_blocks(map->words[i]);
    }
    return graph->ranks;
}

void core_graph_close(struct core_graph *graph) {
    free(graph->ranks);
    free(graph->starts);
    free(graph->is_inner);
    array_free(&graph->targets);
    array_free(&graph->sources);
}

// --- edges

struct filling {
    struct core_graph *graph;
    struct core_scan scan;
    uint32_t from;  // number of the block that is looked through
    bool is_full, is_without_memory;
};

static bool note_edge(void *context, uint64_t at, uint64_t word) {
    (void)at;
    struct filling *filling = context;
    struct core_graph *graph = filling->graph;
    uint64_t place;
    if (!block_map_find(&graph->reach->map, word, &place)) return true;
    uint32_t to = core_graph_number(graph, place);
    if (to == filling->from) return true;
    filling->is_full = graph->targets.count >= (uint64_t)graph->count + EDGES_SPARE ||
                       graph->targets.count == UINT32_MAX;
    if (filling->is_full) return false;
    uint32_t *target = array_push(&graph->targets);
    uint8_t *source = target ? array_push(&graph->sources) : NULL;
    filling->is_without_memory = !source;
    if (!source) return false;
    *target = to;
    *source = filling->from % GROUP_BLOCKS;
    graph->is_inner[filling->from / WORD_BITS] |= (uint64_t)1 << filling->from % WORD_BITS;
    return true;
}

// The blocks that start in one word of the map. False: without memory, or there is no more room.
static bool fill_word(struct filling *filling, uint64_t at) {
    struct core_graph *graph = filling->graph;
    const struct block_map *map = &graph->reach->map;
    for (uint64_t blocks = blocks_of(map->words[at]); blocks; blocks &= blocks - 1) {
        uint64_t place = at * PLACES_PER_WORD + (unsigned)__builtin_ctzll(blocks) / PLACE_BITS;
        if (filling->from % GROUP_BLOCKS == 0)
            graph->starts[filling->from / GROUP_BLOCKS] = (uint32_t)graph->targets.count;
        bool is_reachable = block_map_bits(map, place) & PLACE_MARKED;
        if (is_reachable && !core_scan_words(&filling->scan, block_map_address(map, place),
                                             block_map_end(map, place)))
            return false;
        filling->from++;
    }
    return true;
}

bool core_graph_fill(struct core_graph *graph) {
    const struct block_map *map = &graph->reach->map;
    struct filling filling = {.graph = graph};
    filling.scan = (struct core_scan){.core = graph->reach->core,
                                      .map = map,
                                      .see = note_edge,
                                      .context = &filling,
                                      .is_ascending = true};
    graph->is_filled = true;
    graph->starts = calloc((size_t)graph->count / GROUP_BLOCKS + 2, sizeof *graph->starts);
    graph->is_inner = calloc((size_t)graph->count / WORD_BITS + 1, sizeof *graph->is_inner);
    core_forget(graph->reach->core);
    if (!graph->starts || !graph->is_inner || !core_scan_open(&filling.scan)) return false;
    uint64_t words = map->place_count / PLACES_PER_WORD;
    for (uint64_t i = 0; i < words && fill_word(&filling, i); i++) continue;
    core_scan_close(&filling.scan);
    uint32_t groups = (filling.from + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
    if (filling.is_full) groups = filling.from / GROUP_BLOCKS;  // the last one is not whole
    if (!filling.is_full) graph->starts[groups] = (uint32_t)graph->targets.count;
    graph->known = filling.is_full ? groups * GROUP_BLOCKS : filling.from;
    return !filling.is_without_memory;
}
