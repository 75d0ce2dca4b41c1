// SPDX-License-Identifier: Apache-2.0
// Everything is known by its place in the search's order. `above` is the tree of the search, whose
// paths get shorter as they are followed; `semi` the place of the semidominator; `best` the node of
// the path above with the smallest one.
#include "tool/heap/dominators.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT32_MAX

struct finding {
    const struct dominator_graph *graph;
    struct dominators *found;
    uint32_t *places;  // of nodes; NOWHERE: not reached
    uint32_t *above, *semi, *best;
    uint32_t *starts, *sources;  // edges the other way, by place
    uint32_t *waiting;           // a stack
};

static uint32_t *numbers(uint64_t count) {
    return malloc((count + 1) * sizeof(uint32_t));
}

// --- the search

static void enter(struct finding *finding, uint32_t node, uint32_t above) {
    uint32_t place = finding->found->reached++;
    finding->places[node] = place;
    finding->found->nodes[place] = node;
    finding->above[place] = above;
}

// `next`: where each node's edges go on; `starts` lends its memory.
static void search(struct finding *finding) {
    const struct dominator_graph *graph = finding->graph;
    uint32_t *next = finding->starts, depth = 0;
    memcpy(next, graph->starts, graph->count * sizeof *next);
    for (uint32_t i = 0; i < graph->count; i++) finding->places[i] = NOWHERE;
    enter(finding, 0, 0);
    finding->waiting[depth++] = 0;
    while (depth) {
        uint32_t node = finding->waiting[depth - 1];
        if (next[node] == graph->starts[node + 1]) {
            depth--;
            continue;
        }
        uint32_t target = graph->targets[next[node]++];
        if (finding->places[target] != NOWHERE) continue;
        enter(finding, target, finding->places[node]);
        finding->waiting[depth++] = target;
    }
}

// Counts, sums up, fills: the edges that lead to each place.
static void turn_edges(struct finding *finding) {
    const struct dominator_graph *graph = finding->graph;
    const struct dominators *found = finding->found;
    uint32_t *starts = finding->starts, sum = 0;
    memset(starts, 0, ((size_t)found->reached + 1) * sizeof *starts);
    for (uint32_t place = 0; place < found->reached; place++) {
        uint32_t node = found->nodes[place];
        for (uint32_t i = graph->starts[node]; i < graph->starts[node + 1]; i++)
            starts[finding->places[graph->targets[i]]]++;
    }
    for (uint32_t place = 0; place <= found->reached; place++) sum = starts[place] += sum;
    for (uint32_t place = found->reached; place-- > 0;) {
        uint32_t node = found->nodes[place];
        for (uint32_t i = graph->starts[node]; i < graph->starts[node + 1]; i++)
            finding->sources[--starts[finding->places[graph->targets[i]]]] = place;
    }
}

// --- semidominators

// The node with the smallest semidominator on the path from `place` up to, and without, the first
// one that is not linked yet: those below `linked`. Nodes on the path then point past it.
static uint32_t best_above(struct finding *finding, uint32_t place, uint32_t linked) {
    uint32_t *above = finding->above, *best = finding->best, depth = 0;
    if (above[place] < linked) return best[place];
    for (; above[place] >= linked; place = above[place]) finding->waiting[depth++] = place;
    for (uint32_t upper = place; depth; upper = place) {
        place = finding->waiting[--depth];
        above[place] = above[upper];
        if (finding->semi[best[upper]] < finding->semi[best[place]]) best[place] = best[upper];
    }
    return best[place];
}

static void find_semidominators(struct finding *finding) {
    uint32_t count = finding->found->reached;
    for (uint32_t place = 0; place < count; place++)
        finding->semi[place] = finding->best[place] = place;
    for (uint32_t place = count; place-- > 1;) {
        uint32_t smallest = finding->found->parents[place];
        for (uint32_t i = finding->starts[place]; i < finding->starts[place + 1]; i++) {
            uint32_t best = best_above(finding, finding->sources[i], place + 1);
            if (finding->semi[best] < smallest) smallest = finding->semi[best];
        }
        finding->semi[place] = smallest;
    }
}

// The dominator is the nearest one above, in the tree of dominators, that is not below the
// semidominator.
static void find_dominators(struct finding *finding) {
    uint32_t *parents = finding->found->parents;
    for (uint32_t place = 1; place < finding->found->reached; place++) {
        uint32_t parent = parents[place];
        while (parent > finding->semi[place]) parent = parents[parent];
        parents[place] = parent;
    }
}

bool dominators_find(const struct dominator_graph *graph, struct dominators *found) {
    struct finding finding = {.graph = graph, .found = found};
    *found = (struct dominators){.nodes = numbers(graph->count), .parents = numbers(graph->count)};
    finding.places = numbers(graph->count);
    finding.above = numbers(graph->count);
    finding.semi = numbers(graph->count);
    finding.best = numbers(graph->count);
    finding.starts = numbers(graph->count);
    finding.waiting = numbers(graph->count);
    finding.sources = numbers(graph->starts[graph->count]);
    bool is_ok = found->nodes && found->parents && finding.places && finding.above &&
                 finding.semi && finding.best && finding.starts && finding.waiting &&
                 finding.sources;
    if (is_ok) {
        search(&finding);
        turn_edges(&finding);
        free(finding.places);
        finding.places = NULL;
        memcpy(found->parents, finding.above, found->reached * sizeof *found->parents);
        find_semidominators(&finding);
        find_dominators(&finding);
    }
    free(finding.places);
    free(finding.above);
    free(finding.semi);
    free(finding.best);
    free(finding.starts);
    free(finding.waiting);
    free(finding.sources);
    if (!is_ok) dominators_free(found);
    return is_ok;
}

void dominators_free(struct dominators *found) {
    free(found->nodes);
    free(found->parents);
    *found = (struct dominators){0};
}
