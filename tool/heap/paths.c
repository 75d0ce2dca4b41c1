// SPDX-License-Identifier: Apache-2.0
// Breadth first: each block is entered once, with the one that it was found in. All that are as far
// from a root are looked through in the order in which they lie in memory, then the next ones.
// Blocks are known by their numbers in the graph. The way to one block is looked for in the core at
// first, as most are short; a walk that gets long begins anew when the graph has the edges.
#include "tool/heap/paths.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"

// --- numbers that wait

// A set of numbers from which the smallest one is taken: a bit for each, and above each word of
// bits one that says whether there are any.
enum { PENDING_STAGES = 6 };  // of 32 bits

struct pending {
    uint64_t *words[PENDING_STAGES];
};

enum { STAGE_SHIFT = 6, STAGE_BITS = 1 << STAGE_SHIFT };

// Of numbers below `count`. False without memory; to be closed all the same.
static bool pending_open(struct pending *pending, uint32_t count) {
    uint64_t bits = (uint64_t)count + 1;
    for (int i = 0; i < PENDING_STAGES; i++) {
        bits = (bits + STAGE_BITS - 1) / STAGE_BITS;
        pending->words[i] = calloc(bits, sizeof *pending->words[i]);
        if (!pending->words[i]) return false;
    }
    return true;
}

static void pending_close(struct pending *pending) {
    for (int i = 0; i < PENDING_STAGES; i++) free(pending->words[i]);
}

static void pending_add(struct pending *pending, uint64_t number) {
    for (int i = 0; i < PENDING_STAGES; i++, number >>= STAGE_SHIFT) {
        uint64_t *word = &pending->words[i][number >> STAGE_SHIFT], before = *word;
        *word |= (uint64_t)1 << number % STAGE_BITS;
        if (before) return;
    }
}

// False: there is none.
static bool pending_take(struct pending *pending, uint32_t *number) {
    uint64_t at = 0;
    if (!*pending->words[PENDING_STAGES - 1]) return false;
    for (int i = PENDING_STAGES - 1; i >= 0; i--)
        at = at << STAGE_SHIFT | (unsigned)__builtin_ctzll(pending->words[i][at]);
    *number = (uint32_t)at;
    for (int i = 0; i < PENDING_STAGES; i++, at >>= STAGE_SHIFT) {
        uint64_t *word = &pending->words[i][at >> STAGE_SHIFT];
        *word &= *word - 1;
        if (*word) break;
    }
    return true;
}

// --- ways

#define NO_PARENT UINT32_MAX  // no way was found; as a target: there is none
#define ROOT (UINT32_MAX - 1)

struct walk {
    struct core_ways *ways;
    const struct core_reach *reach;
    struct core_scan scan;     // from the number of the block that is looked through, or from ROOT
    struct pending levels[2];  // as far as the one that is looked through, and the next ones
    struct pending *next;
    uint64_t read;  // blocks whose words were read from the core
    uint32_t target;
    bool is_found, is_without_memory;
};
enum { READ_SHARE = 256 };  // of all blocks: more are not read in an order of their own
enum { BATCH = 64 };        // of blocks whose edges memory brings while others are looked at

// --- one block after the other

static bool is_of_all(const struct walk *walk) {
    return walk->target == NO_PARENT;
}

// A block that refers to no other need not be known, unless it is asked for.
static bool enter(struct walk *walk, uint32_t number, uint32_t parent) {
    uint32_t *slot = &walk->ways->parents[number];
    walk->is_found = number == walk->target;
    bool is_inner = core_graph_is_inner(&walk->ways->graph, number);
    if (!is_inner && !walk->is_found && !is_of_all(walk)) return true;
    if (*slot != NO_PARENT) return true;
    *slot = parent;
    if (is_inner) pending_add(walk->next, number);
    return !walk->is_found;
}

static bool visit(void *context, const struct core_word *word) {
    struct walk *walk = context;
    uint64_t place;
    if (!block_map_find(&walk->reach->map, word->value, &place)) return true;
    return enter(walk, core_graph_number(&walk->ways->graph, place), (uint32_t)word->from);
}

static void bring_targets(const struct walk *walk, const uint32_t *targets, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) __builtin_prefetch(&walk->ways->parents[targets[i]]);
}

static void visit_known(struct walk *walk, uint32_t number) {
    const struct core_graph *graph = &walk->ways->graph;
    const uint32_t *starts = &graph->starts[number / GROUP_BLOCKS];
    const uint8_t *sources = graph->sources.items;
    uint32_t at = starts[0], end = starts[1];
    while (at < end && sources[at] < number % GROUP_BLOCKS) at++;
    for (; at < end && sources[at] == number % GROUP_BLOCKS; at++)
        if (!enter(walk, graph->targets.items[at], number)) return;
}

static void visit_read(struct walk *walk, uint32_t number) {
    const struct block_map *map = &walk->reach->map;
    uint64_t place = core_graph_place(&walk->ways->graph, number);
    walk->scan.from = number;
    core_scan_words(&walk->scan, block_map_address(map, place), block_map_end(map, place));
    walk->read++;
}

// Where a block's edges begin, those edges, and what is known of the blocks at their other ends
// each have to be brought before the next can be.
static void bring_edges(const struct walk *walk, const uint32_t *numbers, unsigned count) {
    const struct core_graph *graph = &walk->ways->graph;
    for (unsigned i = 0; i < count && numbers[i] < graph->known; i++)
        __builtin_prefetch(&graph->starts[numbers[i] / GROUP_BLOCKS]);
    for (unsigned i = 0; i < count && numbers[i] < graph->known; i++) {
        uint32_t start = graph->starts[numbers[i] / GROUP_BLOCKS];
        __builtin_prefetch(&graph->targets.items[start]);
        __builtin_prefetch(&graph->sources.items[start]);
    }
    for (unsigned i = 0; i < count && numbers[i] < graph->known; i++) {
        const uint32_t *starts = &graph->starts[numbers[i] / GROUP_BLOCKS];
        uint32_t edges = starts[1] - starts[0];
        bring_targets(walk, &graph->targets.items[starts[0]], edges < BATCH ? edges : BATCH);
    }
}

static bool is_too_long(const struct walk *walk) {
    return !walk->ways->graph.is_filled && walk->read > walk->ways->graph.count / READ_SHARE;
}

// Some of a level: the blocks with the smallest numbers. False: there were none.
static bool visit_batch(struct walk *walk, struct pending *level) {
    uint32_t numbers[BATCH];
    unsigned count = 0;
    while (count < BATCH && pending_take(level, &numbers[count])) count++;
    bring_edges(walk, numbers, count);
    for (unsigned i = 0; i < count && !walk->is_found; i++) {
        if (numbers[i] < walk->ways->graph.known)
            visit_known(walk, numbers[i]);
        else
            visit_read(walk, numbers[i]);
    }
    return count;
}

static void visit_blocks(struct walk *walk) {
    bool was_any = true;
    for (unsigned turn = 0; was_any && !walk->is_found && !is_too_long(walk); turn++) {
        walk->next = &walk->levels[(turn + 1) % 2];
        was_any = false;
        while (!walk->is_found && visit_batch(walk, &walk->levels[turn % 2])) was_any = true;
    }
}

// --- from the roots

static bool visit_root(void *context, const struct core_word *word) {
    struct walk *walk = context;
    uint64_t place;
    if (!block_map_find(&walk->reach->map, word->value, &place)) return true;
    uint32_t number = core_graph_number(&walk->ways->graph, place);
    bool was_known = walk->ways->parents[number] != NO_PARENT;
    bool is_on = enter(walk, number, ROOT);
    bool is_new = !was_known && walk->ways->parents[number] == ROOT;
    if (!is_new || walk->ways->entries.count >= ENTRIES_MOST) return is_on;
    struct core_entry *entry = array_push(&walk->ways->entries);
    walk->is_without_memory = !entry;
    if (entry) *entry = (struct core_entry){number, word->at};
    return entry && is_on;
}

static int compare_entries(const void *a, const void *b) {
    const struct core_entry *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static bool visit_registers(struct walk *walk) {
    const struct core_image *core = walk->reach->core;
    for (size_t i = 0; i < core->threads.count; i++)
        for (uint32_t k = 0; k < core->threads.items[i].register_count; k++) {
            const struct core_word word = {.value = core->threads.items[i].registers[k]};
            if (!visit_root(walk, &word)) return false;
        }
    return true;
}

static void visit_roots(struct walk *walk) {
    const struct spans *roots = &walk->reach->roots;
    struct core_ways *ways = walk->ways;
    bool is_on = visit_registers(walk);
    walk->scan.see = visit_root;
    for (size_t i = 0; i < roots->items.count && is_on; i++)
        is_on =
            core_scan_words(&walk->scan, roots->items.items[i].start, roots->items.items[i].end);
    walk->scan.see = visit;
    if (ways->entries.count)
        qsort(ways->entries.items, ways->entries.count, sizeof *ways->entries.items,
              compare_entries);
}

// --- the way back

static const struct core_entry *entry_of(const struct core_ways *ways, uint32_t number) {
    size_t low;
    search_first(low, ways->entries.count, ways->entries.items[low].number >= number);
    bool is_found = low < ways->entries.count && ways->entries.items[low].number == number;
    return is_found ? &ways->entries.items[low] : NULL;
}

static bool add_entry(const struct core_ways *ways, uint32_t number, struct core_references *path) {
    const struct core_entry *entry = entry_of(ways, number);
    uint64_t word;
    if (!entry || !entry->at || !core_read(ways->reach->core, entry->at, &word, sizeof word))
        return core_find_in_roots(ways->reach, core_graph_place(&ways->graph, number), path);
    struct core_reference *slot = array_push(&path->items);
    if (slot) *slot = (struct core_reference){.at = entry->at, .to = word};
    return slot;
}

// The word of a parent that leads to the child: the first one.
static bool add_step(const struct core_ways *ways, uint32_t parent, uint32_t child,
                     struct core_references *path) {
    if (parent == ROOT) return add_entry(ways, child, path);
    return core_find_between(ways->reach, core_graph_place(&ways->graph, parent),
                             core_graph_place(&ways->graph, child), 1, path);
}

// From the target back to the root, then turned around.
static bool collect(struct core_ways *ways, uint32_t target, struct core_references *path) {
    uint32_t child = target;
    for (uint32_t parent = 0; parent != ROOT; child = parent) {
        parent = ways->parents[child];
        if (!add_step(ways, parent, child, path)) return false;
        core_place_done(ways->reach->core, CORE_FAR_BYTES, &ways->places);
    }
    for (size_t i = 0; i < path->items.count / 2; i++) {
        struct core_reference *first = &path->items.items[i];
        struct core_reference *last = &path->items.items[path->items.count - 1 - i];
        struct core_reference kept = *first;
        *first = *last;
        *last = kept;
    }
    return true;
}

// --- walks

static bool make_room(struct walk *walk) {
    struct core_ways *ways = walk->ways;
    size_t bytes = (size_t)(ways->graph.count + 1) * sizeof *ways->parents;
    ways->entries.count = 0;
    if (!ways->parents) ways->parents = malloc(bytes);
    if (ways->parents) memset(ways->parents, UINT8_MAX, bytes);  // NO_PARENT
    return ways->parents && pending_open(&walk->levels[0], ways->graph.count) &&
           pending_open(&walk->levels[1], ways->graph.count) && core_scan_open(&walk->scan);
}

static bool walk_once(struct walk *walk) {
    walk->scan = (struct core_scan){.core = walk->reach->core,
                                    .map = &walk->reach->map,
                                    .see = visit,
                                    .context = walk,
                                    .from = ROOT};
    walk->levels[0] = walk->levels[1] = (struct pending){0};
    bool is_ok = make_room(walk);
    if (is_ok) {
        walk->next = &walk->levels[0];
        visit_roots(walk);
        visit_blocks(walk);
    }
    core_scan_close(&walk->scan);
    pending_close(&walk->levels[0]);
    pending_close(&walk->levels[1]);
    return is_ok && !walk->is_without_memory;
}

static bool walk_to(struct core_ways *ways, uint64_t place, struct core_references *path) {
    if (!core_graph_open(ways->reach, &ways->graph)) return false;
    struct walk walk = {
        .ways = ways, .reach = ways->reach, .target = core_graph_number(&ways->graph, place)};
    bool is_ok = walk_once(&walk);
    if (is_ok && !walk.is_found && is_too_long(&walk))
        is_ok = core_graph_fill(&ways->graph) && walk_once(&walk);
    core_graph_drop_edges(&ways->graph);
    return is_ok && (!walk.is_found || collect(ways, walk.target, path));
}

bool core_find_path(const struct core_reach *reach, uint64_t address,
                    struct core_references *path) {
    struct core_ways ways = {.reach = reach};
    uint64_t place;
    *path = (struct core_references){0};
    if (!block_map_find(&reach->map, address, &place)) return true;
    if (reach->is_marked && !(block_map_bits(&reach->map, place) & PLACE_MARKED)) return true;
    bool is_ok = walk_to(&ways, place, path);
    core_ways_close(&ways);
    if (!is_ok) core_references_free(path);
    return is_ok;
}

// --- all ways

struct marking {
    struct block_map *map;
    const uint32_t *parents;
};

static void mark(void *context, uint32_t number, uint64_t place) {
    const struct marking *marking = context;
    if (marking->parents[number] != NO_PARENT) block_map_set(marking->map, place, PLACE_MARKED);
}

bool core_ways_open(struct core_reach *reach, struct core_ways *ways, struct error *error) {
    *ways = (struct core_ways){.reach = reach};
    struct walk walk = {.ways = ways, .reach = reach, .target = NO_PARENT};
    bool is_ok =
        core_graph_open(reach, &ways->graph) && core_graph_fill(&ways->graph) && walk_once(&walk);
    core_graph_drop_edges(&ways->graph);
    if (!is_ok) return error_set(error, "out of memory");
    struct marking marking = {&reach->map, ways->parents};
    if (!reach->is_marked) core_graph_each(&ways->graph, mark, &marking);
    return reach->is_marked || core_reach_settle(reach, error);
}

void core_ways_close(struct core_ways *ways) {
    core_graph_close(&ways->graph);
    array_free(&ways->entries);
    free(ways->parents);
    ways->parents = NULL;
}

bool core_ways_to(struct core_ways *ways, uint64_t address, struct core_references *path) {
    uint64_t place;
    *path = (struct core_references){0};
    if (!block_map_find(&ways->reach->map, address, &place)) return true;
    uint32_t number = core_graph_number(&ways->graph, place);
    if (ways->parents[number] == NO_PARENT || collect(ways, number, path)) return true;
    core_references_free(path);
    return false;
}
