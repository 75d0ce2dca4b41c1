// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/graph.h"

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

void core_graph_each(const struct core_graph *graph,
                     void (*see)(void *context, uint32_t number, uint64_t place), void *context) {
    const struct block_map *map = &graph->reach->map;
    uint32_t number = 0;
    for (uint64_t at = 0; at < map->place_count / PLACES_PER_WORD; at++)
        for (uint64_t blocks = blocks_of(map->words[at]); blocks; blocks &= blocks - 1)
            see(context, number++,
                at * PLACES_PER_WORD + (unsigned)__builtin_ctzll(blocks) / PLACE_BITS);
}

// --- edges

struct filling {
    struct core_graph *graph;
    struct core_scan scan;  // from the number of the block that is looked through
    uint32_t groups;        // that have begun
    bool is_full, is_without_memory;
};

static void begin_groups(struct filling *filling, uint32_t number) {
    struct core_graph *graph = filling->graph;
    while (filling->groups <= number / GROUP_BLOCKS)
        graph->starts[filling->groups++] = (uint32_t)graph->targets.count;
}

static bool push_edge(struct core_graph *graph, uint32_t from, uint32_t to) {
    uint32_t *target = array_push(&graph->targets);
    uint8_t *source = target ? array_push(&graph->sources) : NULL;
    if (!source) return false;
    *target = to;
    *source = from % GROUP_BLOCKS;
    graph->is_inner[from / WORD_BITS] |= (uint64_t)1 << from % WORD_BITS;
    return true;
}

static bool note_edge(void *context, const struct core_word *word) {
    struct filling *filling = context;
    struct core_graph *graph = filling->graph;
    const uint32_t from = (uint32_t)word->from;
    const size_t count = graph->targets.count;
    uint64_t place;
    if (!block_map_find(&graph->reach->map, word->value, &place)) return true;
    uint32_t to = core_graph_number(graph, place);
    if (to == from) return true;
    begin_groups(filling, from);
    // a block's words often lead to the same one, as the begin and the end of a vector do
    bool is_again = count > graph->starts[filling->groups - 1] &&
                    graph->targets.items[count - 1] == to &&
                    graph->sources.items[count - 1] == from % GROUP_BLOCKS;
    if (is_again) return true;
    filling->is_full = count >= graph->room;
    if (filling->is_full) return false;
    filling->is_without_memory = !push_edge(graph, from, to);
    return !filling->is_without_memory;
}

// The blocks that start in one word of the map. False: without memory, or there is no more room.
static bool fill_word(struct filling *filling, uint64_t at) {
    const struct core_reach *reach = filling->graph->reach;
    const struct block_map *map = &reach->map;
    for (uint64_t blocks = blocks_of(map->words[at]); blocks; blocks &= blocks - 1) {
        uint64_t place = at * PLACES_PER_WORD + (unsigned)__builtin_ctzll(blocks) / PLACE_BITS;
        bool is_of_interest = !reach->is_marked || block_map_bits(map, place) & PLACE_MARKED;
        if (is_of_interest &&
            !core_scan_on(&filling->scan, block_map_address(map, place), block_map_end(map, place)))
            return false;
        filling->scan.from++;
    }
    return true;
}

static void fill(struct filling *filling) {
    struct core_graph *graph = filling->graph;
    const uint64_t words = graph->reach->map.place_count / PLACES_PER_WORD;
    uint64_t at = 0;
    while (at < words && fill_word(filling, at)) at++;
    if (at == words && core_scan_finish(&filling->scan)) {
        begin_groups(filling, graph->count + GROUP_BLOCKS - 1);
        graph->known = graph->count;
    } else {
        // the last group that has begun is not whole
        graph->known = (filling->groups - 1) * GROUP_BLOCKS;
    }
}

bool core_graph_fill(struct core_graph *graph) {
    struct filling filling = {.graph = graph};
    filling.scan = (struct core_scan){.core = graph->reach->core,
                                      .map = &graph->reach->map,
                                      .see = note_edge,
                                      .context = &filling,
                                      .is_ascending = true};
    graph->is_filled = true;
    graph->room = (graph->count > EDGES_LEAST ? graph->count : EDGES_LEAST) + (uint64_t)EDGES_SPARE;
    if (graph->reach->edges_most) graph->room = graph->reach->edges_most;
    if (graph->room > UINT32_MAX) graph->room = UINT32_MAX;
    graph->starts = calloc((size_t)graph->count / GROUP_BLOCKS + 3, sizeof *graph->starts);
    graph->is_inner = calloc((size_t)graph->count / WORD_BITS + 1, sizeof *graph->is_inner);
    core_forget(graph->reach->core);
    if (!graph->starts || !graph->is_inner || !core_scan_open(&filling.scan)) return false;
    fill(&filling);
    core_scan_close(&filling.scan);
    return !filling.is_without_memory;
}

void core_graph_drop_edges(struct core_graph *graph) {
    free(graph->starts);
    free(graph->is_inner);
    graph->starts = NULL;
    graph->is_inner = NULL;
    array_free(&graph->targets);
    array_free(&graph->sources);
    graph->known = 0;
}

void core_graph_close(struct core_graph *graph) {
    core_graph_drop_edges(graph);
    free(graph->ranks);
    graph->ranks = NULL;
}
