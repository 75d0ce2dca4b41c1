// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/owners.h"

#include <stdlib.h>
#include <string.h>

enum { EVERYTHING = 0 };
#define SIZE_IS_LARGE UINT32_MAX

struct large_size {
    uint32_t number;
    uint64_t size;
};

struct building {
    struct core_owners *owners;
    struct core_reach *reach;
    uint32_t *sizes;                 // of blocks, by number
    ARRAY(struct large_size) large;  // those beyond 32 bits, ascending by number
    uint32_t *starts, *targets;      // edges of all nodes
};

static uint32_t node_of_block(const struct core_owners *owners, uint32_t number) {
    return 1 + (uint32_t)owners->roots.items.count + number;
}

const struct owner_root *core_owners_root(const struct core_owners *owners, uint32_t place) {
    uint32_t node = owners->tree.nodes[place];
    return node != EVERYTHING && node <= owners->roots.items.count
               ? &owners->roots.items.items[node - 1]
               : NULL;
}

uint32_t core_owners_block(const struct core_owners *owners, uint32_t place) {
    return owners->tree.nodes[place] - 1 - (uint32_t)owners->roots.items.count;
}

// --- edges of all nodes

// Calls for each edge between blocks, by the block that it comes from.
static void each_inner_edge(const struct core_graph *graph,
                            void (*see)(void *context, uint32_t from, uint32_t to), void *context) {
    for (uint32_t group = 0; group <= graph->count / GROUP_BLOCKS; group++)
        for (uint32_t i = graph->starts[group]; i < graph->starts[group + 1]; i++)
            see(context, group * GROUP_BLOCKS + graph->sources.items[i], graph->targets.items[i]);
}

static void count_edge(void *context, uint32_t from, uint32_t to) {
    struct building *building = context;
    (void)to;
    building->starts[node_of_block(building->owners, from) + 1]++;
}

static void put_edge(void *context, uint32_t from, uint32_t to) {
    struct building *building = context;
    uint32_t node = node_of_block(building->owners, from);
    building->targets[building->starts[node]++] = node_of_block(building->owners, to);
}

// Of the root with that index.
static uint32_t node_above(const struct core_owners *owners, uint32_t root) {
    uint32_t above = owners->roots.items.items[root].above;
    return above == OWNER_EVERYTHING ? EVERYTHING : 1 + above;
}

// Starts move on by what is put, and are one node behind until they are back.
static bool make_edges(struct building *building) {
    struct core_owners *owners = building->owners;
    uint32_t roots = (uint32_t)owners->roots.items.count, nodes = 1 + roots + owners->graph.count;
    free(building->starts);
    free(building->targets);
    building->starts = calloc((size_t)nodes + 2, sizeof *building->starts);
    building->targets =
        malloc(((size_t)roots + owners->roots.edges.count + owners->graph.targets.count + 1) *
               sizeof *building->targets);
    if (!building->starts || !building->targets) return false;
    uint32_t *starts = building->starts;
    for (uint32_t i = 0; i < roots; i++) starts[node_above(owners, i) + 1]++;
    for (size_t i = 0; i < owners->roots.edges.count; i++)
        starts[owners->roots.edges.items[i].root + 2]++;
    each_inner_edge(&owners->graph, count_edge, building);
    for (uint32_t i = 1; i <= nodes; i++) starts[i] += starts[i - 1];
    for (uint32_t i = 0; i < roots; i++) building->targets[starts[node_above(owners, i)]++] = 1 + i;
    for (size_t i = 0; i < owners->roots.edges.count; i++) {
        const struct owner_edge *edge = &owners->roots.edges.items[i];
        building->targets[starts[edge->root + 1]++] = node_of_block(owners, edge->number);
    }
    each_inner_edge(&owners->graph, put_edge, building);
    memmove(starts + 1, starts, nodes * sizeof *starts);
    starts[0] = 0;
    return true;
}

// --- sizes

static uint64_t size_of(const struct building *building, uint32_t number) {
    size_t low = 0, high = building->large.count;
    if (building->sizes[number] != SIZE_IS_LARGE) return building->sizes[number];
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(building->large.items[middle].number <= number ? &low : &high) = middle;
    }
    return building->large.items[low].size;
}

static bool note_size(struct building *building, uint32_t number, uint64_t size) {
    building->sizes[number] = size < SIZE_IS_LARGE ? (uint32_t)size : SIZE_IS_LARGE;
    if (size < SIZE_IS_LARGE) return true;
    struct large_size *large = array_push(&building->large);
    if (large) *large = (struct large_size){number, size};
    return large;
}

// Numbers ascend as addresses do.
static bool find_sizes(struct building *building) {
    const struct core_owners *owners = building->owners;
    const struct glibc_heap *heap = &building->reach->heap;
    uint32_t number = 0;
    building->sizes = calloc((size_t)owners->graph.count + 1, sizeof *building->sizes);
    bool is_ok = building->sizes;
    for (size_t i = 0; i < heap->chunks.count && is_ok; i++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
        if (!chunk_is_free(chunk) && number < owners->graph.count)
            is_ok = note_size(building, number++, chunk->size);
    }
    return is_ok;
}

// --- what no root leads to

// How a node was reached: the later searches go through the nodes of ring candidates again. Of the
// sure ones the rank of the roots that led there is added.
enum reached { REACHED_NOT, REACHED_BY_FIRST, REACHED_BY_LAST, REACHED_SURELY };

struct searching {
    const struct building *building;
    uint8_t *reached;  // by node
    uint32_t *waiting;
    uint32_t nodes;
    uint8_t how;  // what nodes become
};

static bool enter(struct searching *searching, uint32_t node) {
    uint8_t *reached = &searching->reached[node];
    if (*reached >= REACHED_SURELY || *reached == searching->how) return false;
    *reached = searching->how;
    return true;
}

// False: it was reached before.
static bool reach_from(struct searching *searching, uint32_t node) {
    const struct building *building = searching->building;
    uint32_t count = 0;
    if (!enter(searching, node)) return false;
    searching->waiting[count++] = node;
    while (count) {
        node = searching->waiting[--count];
        for (uint32_t i = building->starts[node]; i < building->starts[node + 1]; i++)
            if (enter(searching, building->targets[i]))
                searching->waiting[count++] = building->targets[i];
    }
    return true;
}

static bool add_leaked_edge(struct building *building, uint32_t node) {
    struct core_owners *owners = building->owners;
    struct owner_edge *edge = array_push(&owners->roots.edges);
    if (edge) *edge = (struct owner_edge){owners->roots.leaked, node - node_of_block(owners, 0)};
    return edge;
}

// One of each ring that nothing else leads to, the one with the lowest address; all that is left is
// in such a ring or behind one. In the order of addresses a node is a candidate if no earlier
// candidate leads to it. A later candidate may lead to an earlier one: backwards, those are left
// out that a later one leads to.
static bool add_rings(struct building *building, struct searching *searching) {
    struct core_owners *owners = building->owners;
    struct {
        ARRAY(uint32_t) nodes;
    } candidates = {{0}};
    bool is_ok = true;
    searching->how = REACHED_BY_FIRST;
    for (uint32_t node = node_of_block(owners, 0); node < searching->nodes && is_ok; node++) {
        if (!reach_from(searching, node)) continue;
        uint32_t *slot = array_push(&candidates.nodes);
        if (slot) *slot = node;
        is_ok = slot;
    }
    searching->how = REACHED_BY_LAST;
    for (size_t i = candidates.nodes.count; i-- && is_ok;)
        if (reach_from(searching, candidates.nodes.items[i]))
            is_ok = add_leaked_edge(building, candidates.nodes.items[i]);
    array_free(&candidates.nodes);
    return is_ok;
}

// Those that no leaked block refers to, then one of each ring.
static bool add_leaked(struct building *building, struct searching *searching) {
    struct core_owners *owners = building->owners;
    uint32_t first = node_of_block(owners, 0);
    uint8_t *is_referred = calloc((size_t)searching->nodes + 1, 1);
    bool is_ok = is_referred;
    for (uint32_t node = first; node < searching->nodes && is_ok; node++) {
        if (searching->reached[node]) continue;
        owners->leaked_count++;
        owners->leaked_bytes += size_of(building, node - first);
        for (uint32_t i = building->starts[node]; i < building->starts[node + 1]; i++)
            if (building->targets[i] != node) is_referred[building->targets[i]] = true;
    }
    for (uint32_t node = first; node < searching->nodes && is_ok; node++) {
        bool is_first = !searching->reached[node] && !is_referred[node];
        is_ok = !is_first || (reach_from(searching, node) && add_leaked_edge(building, node));
    }
    is_ok = is_ok && add_rings(building, searching);
    free(is_referred);
    return is_ok;
}

// What roots of one rank lead to, beyond what those of earlier ones do.
static void reach_from_rank(struct building *building, struct searching *searching,
                            enum owner_rank rank) {
    struct core_owners *owners = building->owners;
    const struct owner_root *roots = owners->roots.items.items;
    uint32_t first = node_of_block(owners, 0), kept = 0;
    searching->how = (uint8_t)(REACHED_SURELY + rank);
    for (size_t i = 0; i < owners->roots.edges.count; i++) {
        const struct owner_edge edge = owners->roots.edges.items[i];
        if (roots[edge.root].rank != rank || !searching->reached[first + edge.number])
            owners->roots.edges.items[kept++] = edge;
    }
    owners->roots.edges.count = kept;
    for (uint32_t i = 0; i < owners->roots.items.count; i++)
        if (roots[i].rank == rank) reach_from(searching, 1 + i);
}

static void reach_from_roots(struct building *building, struct searching *searching) {
    searching->reached[EVERYTHING] = REACHED_SURELY;
    for (enum owner_rank rank = 0; rank < OWNER_RANKS; rank++)
        reach_from_rank(building, searching, rank);
}

// What a block refers to that roots of an earlier rank lead to is theirs, as what is lost keeps
// nothing that is not: such an edge leads back to where it comes from.
static void drop_late_edges(struct building *building, const struct searching *searching) {
    struct core_graph *graph = &building->owners->graph;
    const uint8_t *reached = searching->reached + node_of_block(building->owners, 0);
    for (uint32_t group = 0; group <= graph->count / GROUP_BLOCKS; group++)
        for (uint32_t i = graph->starts[group]; i < graph->starts[group + 1]; i++) {
            uint32_t from = group * GROUP_BLOCKS + graph->sources.items[i];
            uint8_t to = reached[graph->targets.items[i]];
            bool is_late = reached[from] < REACHED_SURELY || reached[from] > to;
            if (to >= REACHED_SURELY && is_late) graph->targets.items[i] = from;
        }
}

static bool find_leaked(struct building *building) {
    const struct core_owners *owners = building->owners;
    uint32_t nodes = node_of_block(owners, owners->graph.count);
    struct searching searching = {.building = building,
                                  .reached = calloc((size_t)nodes + 1, 1),
                                  .waiting = malloc(((size_t)nodes + 1) * sizeof(uint32_t)),
                                  .nodes = nodes};
    bool is_ok = searching.reached && searching.waiting;
    if (is_ok) {
        reach_from_roots(building, &searching);
        drop_late_edges(building, &searching);
        is_ok = add_leaked(building, &searching);
    }
    free(searching.reached);
    free(searching.waiting);
    return is_ok;
}

// --- sums

static void sum_up(struct building *building) {
    struct core_owners *owners = building->owners;
    const struct dominators *tree = &owners->tree;
    uint32_t first = node_of_block(owners, 0);
    for (uint32_t place = tree->reached; place-- > 1;) {
        uint32_t node = tree->nodes[place], parent = tree->parents[place];
        if (node >= first) {
            owners->retained[place] += size_of(building, node - first);
            owners->counts[place]++;
        }
        owners->retained[parent] += owners->retained[place];
        owners->counts[parent] += owners->counts[place];
        owners->starts[parent + 1]++;
    }
    for (uint32_t place = 0; place < tree->reached; place++)
        owners->starts[place + 1] += owners->starts[place];
    for (uint32_t place = tree->reached; place-- > 1;)
        owners->children[--owners->starts[tree->parents[place] + 1]] = place;
    memmove(owners->starts, owners->starts + 1, tree->reached * sizeof *owners->starts);
    owners->starts[tree->reached] = tree->reached ? tree->reached - 1 : 0;
}

// `places`: of nodes.
static void find_shared(struct building *building, uint32_t *places, uint8_t *is_direct) {
    struct core_owners *owners = building->owners;
    const struct dominators *tree = &owners->tree;
    uint32_t first = node_of_block(owners, 0);
    for (uint32_t place = 0; place < tree->reached; place++) places[tree->nodes[place]] = place;
    for (uint32_t place = 0; place < tree->reached; place++) {
        uint32_t node = tree->nodes[place];
        // two functions of a thread, that is: the thread itself
        uint32_t above = node && node < first ? places[node_above(owners, node - 1)] : place;
        for (uint32_t i = building->starts[node]; i < building->starts[node + 1]; i++) {
            uint32_t target = places[building->targets[i]];
            uint32_t owner = tree->parents[target];
            is_direct[target] |= owner == place || (owner == above && above);
        }
    }
    for (uint32_t place = 1; place < tree->reached; place++) {
        if (is_direct[place] || tree->nodes[place] < first) continue;
        owners->shared_count++;
        owners->shared_bytes += size_of(building, tree->nodes[place] - first);
    }
}

// Blocks to which words lead only inside. `is_lost`: room for a byte a place.
static void find_inner(struct building *building, uint8_t *is_lost) {
    struct core_owners *owners = building->owners;
    const struct dominators *tree = &owners->tree;
    uint32_t first = node_of_block(owners, 0);
    is_lost[0] = false;
    for (uint32_t place = 1; place < tree->reached; place++) {
        uint32_t node = tree->nodes[place];
        is_lost[place] = is_lost[tree->parents[place]] || node == 1 + owners->roots.leaked;
        if (node < first || is_lost[place]) continue;
        uint32_t number = node - first;
        if (owners->graph.is_met[number / 64] >> number % 64 & 1) continue;
        owners->inner_count++;
        owners->inner_bytes += size_of(building, number);
    }
}

// What the edges tell of the tree; then they go.
static bool sum_edges(struct building *building) {
    struct core_owners *owners = building->owners;
    size_t nodes = node_of_block(owners, owners->graph.count), reached = owners->tree.reached;
    uint32_t *places = calloc(nodes + 1, sizeof *places);
    uint8_t *is_direct = calloc(reached + 1, 1);
    bool is_ok = places && is_direct;
    if (is_ok) {
        find_shared(building, places, is_direct);
        find_inner(building, is_direct);
    }
    free(places);
    free(is_direct);
    free(building->starts);
    free(building->targets);
    building->starts = building->targets = NULL;
    return is_ok;
}

static bool sum(struct building *building) {
    struct core_owners *owners = building->owners;
    const struct dominator_graph graph = {node_of_block(owners, owners->graph.count),
                                          building->starts, building->targets};
    core_graph_drop_edges(&owners->graph);
    if (!dominators_find(&graph, &owners->tree) || !sum_edges(building)) return false;
    size_t reached = owners->tree.reached;
    owners->retained = calloc(reached + 1, sizeof *owners->retained);
    owners->counts = calloc(reached + 1, sizeof *owners->counts);
    owners->starts = calloc(reached + 2, sizeof *owners->starts);
    owners->children = calloc(reached + 1, sizeof *owners->children);
    if (!owners->retained || !owners->counts || !owners->starts || !owners->children) return false;
    sum_up(building);
    free(owners->tree.parents);
    owners->tree.parents = NULL;
    return true;
}

static bool find_graph(struct core_reach *reach, struct core_types *types, bool has_locals,
                       struct core_owners *owners) {
    struct core_graph *graph = &owners->graph;
    struct thread_data data;
    if (!core_graph_open(reach, graph) || !thread_data_find(reach, types, &data)) return false;
    if (data.in_blocks.items.count) graph->left_out = &data.in_blocks;
    bool is_ok = core_graph_note_starts(graph) && core_graph_fill(graph) &&
                 owner_roots_find(reach, types, &data, graph, has_locals, &owners->roots);
    graph->left_out = NULL;
    thread_data_free(&data);
    return is_ok;
}

bool core_owners_find(struct core_reach *reach, struct core_types *types, bool has_locals,
                      struct core_owners *owners, struct error *error) {
    struct building building = {.owners = owners, .reach = reach};
    *owners = (struct core_owners){0};
    reach->edges_most = UINT32_MAX;
    bool is_ok = find_graph(reach, types, has_locals, owners) && find_sizes(&building);
    // numbers of nodes have 32 bits
    bool is_whole = !is_ok || (owners->graph.known >= owners->graph.count &&
                               owners->roots.items.count < BLOCKS_MOST - owners->graph.count);
    core_reach_drop_chunks(reach);
    is_ok = is_ok && is_whole && make_edges(&building) && find_leaked(&building) &&
            make_edges(&building) && sum(&building);
    free(building.starts);
    free(building.targets);
    free(building.sizes);
    array_free(&building.large);
    if (!is_ok) core_owners_free(owners);
    if (!is_whole)
        return error_set(error,
                         "it has more blocks, or references between them, than 32 bits count");
    return is_ok || error_set(error, "out of memory");
}

// Which blocks the root of what is lost refers to, by number.
static uint8_t *find_direct(const struct core_owners *owners) {
    uint8_t *are_direct = calloc((size_t)owners->graph.count + 1, 1);
    for (size_t i = 0; are_direct && i < owners->roots.edges.count; i++) {
        const struct owner_edge *edge = &owners->roots.edges.items[i];
        if (!strcmp(owners->roots.items.items[edge->root].name, CORE_LEAKED_NAME))
            are_direct[edge->number] = true;
    }
    return are_direct;
}

static uint32_t place_of_leaked(const struct core_owners *owners) {
    for (uint32_t i = owners->starts[0]; i < owners->starts[1]; i++) {
        const struct owner_root *root = core_owners_root(owners, owners->children[i]);
        if (root && !strcmp(root->name, CORE_LEAKED_NAME)) return owners->children[i];
    }
    return UINT32_MAX;
}

uint64_t core_owners_size(const struct core_owners *owners, uint32_t place) {
    uint64_t size = owners->retained[place];
    for (uint32_t i = owners->starts[place]; i < owners->starts[place + 1]; i++)
        size -= owners->retained[owners->children[i]];
    return size;
}

bool core_owners_each_lost(const struct core_owners *owners,
                           bool (*see)(void *context, const struct core_lost_block *lost),
                           void *context) {
    uint8_t *are_direct = find_direct(owners);
    uint32_t leaked = place_of_leaked(owners);
    bool is_ok = are_direct;
    for (uint32_t i = leaked == UINT32_MAX ? 0 : owners->starts[leaked];
         leaked != UINT32_MAX && i < owners->starts[leaked + 1] && is_ok; i++) {
        uint32_t place = owners->children[i], number = core_owners_block(owners, place);
        uint64_t size = core_owners_size(owners, place);
        const struct core_lost_block lost = {
            .address = block_map_address(&owners->graph.reach->map,
                                         core_graph_place(&owners->graph, number)),
            .size = size,
            .is_direct = are_direct[number],
            .below_blocks = owners->counts[place] - 1,
            .below_bytes = owners->retained[place] - size};
        is_ok = see(context, &lost);
    }
    free(are_direct);
    return is_ok;
}

void core_owners_free(struct core_owners *owners) {
    core_graph_close(&owners->graph);
    owner_roots_free(&owners->roots);
    dominators_free(&owners->tree);
    free(owners->retained);
    free(owners->counts);
    free(owners->starts);
    free(owners->children);
    *owners = (struct core_owners){0};
}
