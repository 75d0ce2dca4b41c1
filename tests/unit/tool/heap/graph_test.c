// SPDX-License-Identifier: Apache-2.0
// References between blocks as a graph: numbers and places, edges of a few blocks, and a block with
// more references than there is room for, through which the shortest way is found all the same.
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tool/heap/paths.h"
#include "tool/heap/references.h"

enum { DATA = 0x10000, DATA_WORDS = 64, HEAP = 0x100000, WORD = 8, STEP = 4 };
enum {
    SMALL = 40,
    BIG_WORDS = 2000,
    EDGES_MOST = 1000,
    HEAP_WORDS = SMALL * STEP + BIG_WORDS + 16
};

static uint64_t words[DATA_WORDS + HEAP_WORDS];
static struct memory_segment segments[2];
static struct core_image core;
static struct core_reach reach;

// Blocks of three words; the last one is the big one.
static uint64_t index_of(int block) {
    return DATA_WORDS + 2 + (uint64_t)block * STEP;
}

static uint64_t address_of(int block) {
    return HEAP + (index_of(block) - DATA_WORDS) * WORD;
}

static void refer(int from, int word, int to) {
    words[index_of(from) + (uint64_t)word] = address_of(to);
}

static int setup(void **state) {
    (void)state;
    memset(words, 0, sizeof words);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    core_reach_close(&reach);
    return 0;
}

static void look(void) {
    struct glibc_heap heap = {0};
    const struct spans others = {0};
    struct error error;
    const uint64_t heap_bytes = (uint64_t)HEAP_WORDS * WORD, data_bytes = DATA_WORDS * WORD;
    segments[0] = (struct memory_segment){DATA, DATA + data_bytes, 0, data_bytes, true, false};
    segments[1] =
        (struct memory_segment){HEAP, HEAP + heap_bytes, data_bytes, heap_bytes, true, false};
    core = (struct core_image){
        .source = {.descriptor = -1, .bytes = (uint8_t *)words, .size = sizeof words},
        .map = (uint8_t *)words,
        .machine = EM_X86_64};
    core.segments.items = segments;
    core.segments.count = 2;
    for (int i = 0; i <= SMALL; i++) {
        struct glibc_chunk *chunk = array_push(&heap.chunks);
        assert_non_null(chunk);
        uint64_t size = i == SMALL ? (uint64_t)BIG_WORDS * WORD : 3 * WORD;
        *chunk = (struct glibc_chunk){address_of(i), size, CHUNK_USED};
    }
    struct glibc_range *range = array_push(&heap.ranges);
    assert_non_null(range);
    *range =
        (struct glibc_range){HEAP, HEAP + heap_bytes, HEAP + heap_bytes, 0, true, HEAP + 2 * WORD};
    assert_true(core_reach_open(&core, &heap, true, &others, &reach, &error));
    assert_true(core_reach_mark(&reach, &error));
}

static void test_edges(void **state) {
    (void)state;
    struct core_graph graph;
    words[3] = address_of(0);
    refer(0, 1, 20);
    refer(0, 2, 0);
    refer(20, 0, 17);
    refer(20, 2, 3);
    refer(30, 0, 31);  // leaked
    look();
    assert_true(core_graph_open(&reach, &graph));
    assert_int_equal(graph.count, SMALL + 1);
    for (int i = 0; i <= SMALL; i++) {
        uint64_t place;
        assert_true(block_map_find(&reach.map, address_of(i), &place));
        assert_int_equal(core_graph_number(&graph, place), i);
        assert_int_equal(core_graph_place(&graph, (uint32_t)i), place);
        assert_true(core_graph_is_inner(&graph, (uint32_t)i));
    }
    assert_true(core_graph_fill(&graph));
    assert_int_equal(graph.known, SMALL + 1);
    assert_int_equal(graph.targets.count, 3);
    assert_int_equal(graph.targets.items[0], 20);
    assert_int_equal(graph.targets.items[1], 17);
    assert_int_equal(graph.targets.items[2], 3);
    assert_int_equal(graph.sources.items[2], 20 % GROUP_BLOCKS);
    assert_int_equal(graph.starts[1], 1);
    assert_int_equal(graph.starts[2], 3);
    assert_int_equal(graph.starts[3], 3);
    for (uint32_t i = 0; i <= SMALL; i++)
        assert_int_equal(core_graph_is_inner(&graph, i), i == 0 || i == 20);
    core_graph_close(&graph);
}

// 0 to 16 to the big one, which is the last one, to 33: the group of the big one has no edges in
// the graph, the blocks before have.
static void test_too_many(void **state) {
    (void)state;
    struct core_graph graph;
    struct core_references path;
    words[3] = address_of(0);
    refer(0, 0, 16);
    refer(16, 0, SMALL);
    for (int i = 0; i < BIG_WORDS; i++) refer(SMALL, i, i % 2);
    refer(SMALL, BIG_WORDS - 1, 33);
    refer(33, 0, 34);
    look();
    reach.edges_most = EDGES_MOST;
    assert_true(core_graph_open(&reach, &graph));
    assert_true(core_graph_fill(&graph));
    assert_int_equal(graph.known, 2 * GROUP_BLOCKS);
    assert_true(core_graph_is_inner(&graph, 34));
    assert_false(core_graph_is_inner(&graph, 1));
    core_graph_close(&graph);
    assert_true(core_find_path(&reach, address_of(34), &path));
    assert_int_equal(path.items.count, 5);
    assert_int_equal(path.items.items[0].at, DATA + 3 * WORD);
    assert_int_equal(path.items.items[2].block, address_of(16));
    assert_int_equal(path.items.items[3].at, address_of(SMALL) + (BIG_WORDS - 1) * WORD);
    assert_int_equal(path.items.items[4].block, address_of(33));
    core_references_free(&path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_edges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
