// SPDX-License-Identifier: Apache-2.0
// Dominators by taking each node away and searching again.
#include "tool/heap/dominators.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 200, EDGES_MAX = 1200, GRAPHS = 1000, LONG = 1 << 20 };

static uint32_t draw(uint32_t below) {
    static uint64_t state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

struct edges {
    uint32_t count, from[EDGES_MAX], to[EDGES_MAX];
};

// What is reached from the root without the node `without`.
static void reach(uint32_t nodes, const struct edges *edges, uint32_t without, bool *reached) {
    bool has_more = without != 0;
    memset(reached, 0, nodes * sizeof *reached);
    reached[0] = without != 0;
    while (has_more) {
        has_more = false;
        for (uint32_t i = 0; i < edges->count; i++) {
            if (!reached[edges->from[i]] || reached[edges->to[i]] || edges->to[i] == without)
                continue;
            reached[edges->to[i]] = has_more = true;
        }
    }
}

static struct dominators find(uint32_t nodes, const struct edges *edges) {
    uint32_t starts[NODES_MAX + 1] = {0}, targets[EDGES_MAX];
    struct dominators found;
    for (uint32_t i = 0; i < edges->count; i++) starts[edges->from[i] + 1]++;
    for (uint32_t i = 0; i < nodes; i++) starts[i + 1] += starts[i];
    uint32_t next[NODES_MAX + 1];
    memcpy(next, starts, sizeof next);
    for (uint32_t i = 0; i < edges->count; i++) targets[next[edges->from[i]]++] = edges->to[i];
    const struct dominator_graph graph = {nodes, starts, targets};
    assert_true(dominators_find(&graph, &found));
    return found;
}

// `a` dominates `b`, by what was found.
static bool dominates(const struct dominators *found, uint32_t a, uint32_t b) {
    uint32_t place = 0;
    while (found->nodes[place] != b) place++;
    for (; place; place = found->parents[place])
        if (found->nodes[place] == a) return true;
    return a == 0;
}

static void check(uint32_t nodes, const struct edges *edges) {
    bool all[NODES_MAX], without[NODES_MAX];
    struct dominators found = find(nodes, edges);
    reach(nodes, edges, UINT32_MAX, all);
    uint32_t reached = 0;
    for (uint32_t i = 0; i < nodes; i++) reached += all[i];
    assert_int_equal(found.reached, reached);
    for (uint32_t place = 0; place < reached; place++) {
        assert_true(all[found.nodes[place]]);
        assert_true(place ? found.parents[place] < place : !found.parents[place]);
    }
    for (uint32_t a = 0; a < nodes; a++) {
        if (!all[a]) continue;
        reach(nodes, edges, a, without);
        for (uint32_t b = 0; b < nodes; b++)
            if (all[b]) assert_int_equal(dominates(&found, a, b), !without[b] || a == b);
    }
    dominators_free(&found);
}

static void test_random(void **state) {
    (void)state;
    for (int i = 0; i < GRAPHS; i++) {
        struct edges edges = {.count = 0};
        // most are small, so that all kinds of shapes come; a few are as large as they may be
        uint32_t nodes = 1 + draw(i % 50 ? 24 : NODES_MAX), dense = 1 + draw(4);
        edges.count = draw(nodes * dense + 1);
        if (edges.count > EDGES_MAX) edges.count = EDGES_MAX;
        for (uint32_t k = 0; k < edges.count; k++) {
            edges.from[k] = draw(nodes);
            edges.to[k] = draw(nodes);
        }
        check(nodes, &edges);
    }
}

static void test_shapes(void **state) {
    (void)state;
    // a diamond, whose foot is the top's; a ring behind it; a part that nothing leads to
    const struct edges diamond = {7, {0, 1, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 4, 5, 4}};
    check(8, &diamond);
    struct dominators found = find(8, &diamond);
    assert_int_equal(found.reached, 6);
    assert_true(dominates(&found, 1, 4));
    assert_false(dominates(&found, 2, 4));
    dominators_free(&found);
    // two ways in, further up and further down
    const struct edges ladder = {8, {0, 0, 1, 2, 3, 1, 4, 2}, {1, 2, 3, 4, 5, 4, 5, 3}};
    check(6, &ladder);
    const struct edges none = {.count = 0};
    check(1, &none);
}

// A list as long as those of real heaps: nothing may recurse.
static void test_long(void **state) {
    (void)state;
    uint32_t *starts = malloc((LONG + 1) * sizeof *starts);
    uint32_t *targets = malloc(2 * LONG * sizeof *targets);
    for (uint32_t i = 0; i < LONG; i++) {
        starts[i] = 2 * i;
        targets[2 * i] = i + 1 < LONG ? i + 1 : i;
        targets[2 * i + 1] = i ? i - 1 : i;
    }
    starts[LONG] = 2 * LONG;
    const struct dominator_graph graph = {LONG, starts, targets};
    struct dominators found;
    assert_true(dominators_find(&graph, &found));
    assert_int_equal(found.reached, LONG);
    for (uint32_t place = 1; place < LONG; place++) {
        if (found.nodes[place] != place || found.parents[place] != place - 1)
            fail_msg("%u: node %u below %u", place, found.nodes[place], found.parents[place]);
    }
    dominators_free(&found);
    free(starts);
    free(targets);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
