// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/references.h"

#include <elf.h>

#include "tool/base/search.h"

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
    if (graph->left_out && spans_have(graph->left_out, word->at)) return true;
    uint32_t to = core_graph_number(graph, place);
    if (to == from) return true;
    core_graph_meet(graph, word->value, place, to);
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

bool core_graph_note_starts(struct core_graph *graph) {
    graph->is_met = calloc((size_t)graph->count / WORD_BITS + 1, sizeof *graph->is_met);
    return graph->is_met;
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
    free(graph->is_met);
    graph->is_met = NULL;
    free(graph->ranks);
    graph->ranks = NULL;
}

void core_references_free(struct core_references *references) {
    array_free(&references->items);
}

const char *core_register_name(uint32_t machine, uint32_t number) {
    static const char *const x86[] = {"r15",     "r14",      "r13", "r12", "rbp",    "rbx", "r11",
                                      "r10",     "r9",       "r8",  "rax", "rcx",    "rdx", "rsi",
                                      "rdi",     "orig_rax", "rip", "cs",  "eflags", "rsp", "ss",
                                      "fs_base", "gs_base",  "ds",  "es",  "fs",     "gs"};
    static const char *const arm[] = {
        "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",    "x10", "x11",
        "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",   "x22", "x23",
        "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",  "pstate"};
    if (machine == EM_X86_64 && number < sizeof x86 / sizeof *x86) return x86[number];
    if (machine == EM_AARCH64 && number < sizeof arm / sizeof *arm) return arm[number];
    return "?";
}

// --- words that lead into one block

struct search {
    const struct core_reach *reach;
    struct core_references *found;
    uint64_t place;       // of the block that is looked for,
    uint64_t start, end;  // and its addresses
    size_t most;          // references that are enough
};

// A word that a scan found in the block from where it comes, by address; 0: in a root.
static bool note_reference(void *context, const struct core_word *word) {
    const struct search *search = context;
    uint64_t place;
    bool is_near = word->value >= search->start && word->value < search->end;
    if (!is_near || !block_map_find(&search->reach->map, word->value, &place) ||
        place != search->place)
        return true;
    struct core_reference *slot = array_push(&search->found->items);
    if (slot)
        *slot = (struct core_reference){.at = word->at, .to = word->value, .block = word->from};
    return slot && search->found->items.count < search->most;
}

static bool search_registers(const struct search *search) {
    const struct core_image *core = search->reach->core;
    for (size_t i = 0; i < core->threads.count; i++) {
        const struct core_thread *thread = &core->threads.items[i];
        for (uint32_t k = 0; k < thread->register_count; k++) {
            size_t before = search->found->items.count;
            const struct core_word word = {.value = thread->registers[k]};
            bool is_ok = note_reference((void *)search, &word);
            if (search->found->items.count > before) {
                search->found->items.items[before].thread = thread;
                search->found->items.items[before].register_number = k;
            }
            if (!is_ok) return false;
        }
    }
    return true;
}

static bool search_roots(const struct search *search, struct core_scan *scan) {
    const struct spans *roots = &search->reach->roots;
    for (size_t i = 0; i < roots->items.count; i++)
        if (!core_scan_words(scan, roots->items.items[i].start, roots->items.items[i].end))
            return false;
    return true;
}

static bool search_blocks(const struct search *search, struct core_scan *scan) {
    const struct glibc_heap *heap = &search->reach->heap;
    for (size_t i = 0; i < heap->chunks.count; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (chunk_is_free(chunk) || chunk->address == search->start) continue;
        scan->from = chunk->address;
        if (!core_scan_on(scan, chunk->address, chunk->address + chunk->size)) return false;
    }
    return core_scan_finish(scan);
}

static struct search search_for(const struct core_reach *reach, uint64_t place, size_t most,
                                struct core_references *found) {
    return (struct search){.reach = reach,
                           .found = found,
                           .place = place,
                           .start = block_map_address(&reach->map, place),
                           .end = block_map_end(&reach->map, place),
                           .most = most};
}

// Only words that lead into the block are of interest: a map of nothing else.
static struct block_map only(const struct search *search) {
    return (struct block_map){.low = search->start, .high = search->end};
}

bool core_find_incoming(const struct core_reach *reach, uint64_t address,
                        struct core_references *references) {
    uint64_t place;
    *references = (struct core_references){0};
    if (!block_map_find(&reach->map, address, &place)) return true;
    const struct search search = search_for(reach, place, SIZE_MAX, references);
    const struct block_map map = only(&search);
    struct core_scan scan = {.core = reach->core,
                             .map = &map,
                             .see = note_reference,
                             .context = (void *)&search,
                             .is_ascending = true};
    bool is_ok = core_scan_open(&scan) && search_registers(&search) &&
                 search_roots(&search, &scan) && search_blocks(&search, &scan);
    core_scan_close(&scan);
    if (!is_ok) core_references_free(references);
    return is_ok;
}

bool core_find_in_roots(const struct core_reach *reach, uint64_t place,
                        struct core_references *found) {
    const struct search search = search_for(reach, place, found->items.count + 1, found);
    const struct block_map map = only(&search);
    struct core_scan scan = {
        .core = reach->core, .map = &map, .see = note_reference, .context = (void *)&search};
    bool is_ok = core_scan_open(&scan);
    if (is_ok && search_registers(&search)) search_roots(&search, &scan);
    core_scan_close(&scan);
    return is_ok && found->items.count == search.most;
}

bool core_find_between(const struct core_reach *reach, uint64_t from, uint64_t to, size_t most,
                       struct core_references *found) {
    const size_t before = found->items.count;
    const struct search search = search_for(reach, to, before + most, found);
    const struct block_map map = only(&search);
    const uint64_t start = block_map_address(&reach->map, from);
    struct core_scan scan = {.core = reach->core,
                             .map = &map,
                             .see = note_reference,
                             .context = (void *)&search,
                             .from = start};
    bool is_ok = core_scan_open(&scan);
    if (is_ok) core_scan_words(&scan, start, block_map_end(&reach->map, from));
    core_scan_close(&scan);
    return is_ok && found->items.count > before;
}

// --- words of one block

struct outgoing {
    const struct core_reach *reach;
    struct core_references *found;
};

static bool note_outgoing(void *context, const struct core_word *word) {
    const struct outgoing *outgoing = context;
    const struct block_map *map = &outgoing->reach->map;
    uint64_t place;
    if (!block_map_find(map, word->value, &place) || block_map_address(map, place) == word->from)
        return true;
    struct core_reference *slot = array_push(&outgoing->found->items);
    if (slot)
        *slot = (struct core_reference){.at = word->at, .to = word->value, .block = word->from};
    return slot;
}

bool core_find_outgoing(const struct core_reach *reach, uint64_t address, uint64_t size,
                        struct core_references *references) {
    *references = (struct core_references){0};
    struct outgoing outgoing = {reach, references};
    struct core_scan scan = {.core = reach->core,
                             .map = &reach->map,
                             .see = note_outgoing,
                             .context = &outgoing,
                             .from = address};
    bool is_ok = core_scan_open(&scan) && core_scan_words(&scan, address, address + size);
    core_scan_close(&scan);
    if (!is_ok) core_references_free(references);
    return is_ok;
}

// --- references among leaked blocks

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
        core_place_done(leaks->reach->core, CORE_FAR_BYTES, &leaks->places);
    }
    if (!is_ok) core_references_free(found);
    return is_ok;
}
