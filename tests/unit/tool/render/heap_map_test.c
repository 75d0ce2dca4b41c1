// SPDX-License-Identifier: Apache-2.0
// The picture of the heap, with pages of every size that kernels have.
#include "tool/render/heap_screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { PAGES = 6 };

// A main arena of four pages, one without memory, and a block of two that is live as a whole.
static void make(struct heap_state *state, uint64_t page) {
    static struct heap_area areas[2];
    static uint32_t pages[PAGES];
    const uint32_t live[PAGES] = {
        0, (uint32_t)page / 2, RESIDENCY_ABSENT, (uint32_t)page, (uint32_t)page, (uint32_t)page};
    areas[0] = (struct heap_area){0, 4 * page, HEAP_AREA_MAIN, 0};
    areas[1] = (struct heap_area){8 * page, 10 * page, HEAP_AREA_BLOCKS, 4};
    memcpy(pages, live, sizeof pages);
    *state = (struct heap_state){0};
    state->residency.page_bytes = page;
    state->residency.range_bytes = PAGES * page;
    state->residency.pages.items = pages;
    state->residency.pages.count = PAGES;
    state->areas.items = areas;
    state->areas.count = 2;
}

static void check_strip(const struct heap_strip *strip, uint64_t bytes, uint64_t resident,
                        uint64_t live) {
    assert_int_equal(strip->bytes, bytes);
    assert_int_equal(strip->resident_bytes, resident);
    assert_int_equal(strip->live_bytes, live);
}

static void test_cells_are_whole_pages(void **state) {
    (void)state;
    for (uint64_t page = 4096; page <= 65536; page *= 4) {
        struct heap_state heap;
        struct heap_map map;
        const uint8_t cells[PAGES] = {0, 50, HEAP_CELL_ABSENT, 100, 100, 100};
        make(&heap, page);
        assert_true(heap_map_build(&heap, 100, &map, NULL));
        assert_int_equal(map.cell_bytes, page);
        assert_int_equal(map.strips.count, 2);
        check_strip(&map.strips.items[0], 4 * page, 3 * page, page / 2 + page);
        check_strip(&map.strips.items[1], 2 * page, 2 * page, 2 * page);
        assert_int_equal(map.cells.count, PAGES);
        assert_memory_equal(map.cells.items, cells, PAGES);
        assert_int_equal(map.addresses.items[5], 9 * page);
        heap_map_free(&map);
        assert_true(heap_map_build(&heap, 3, &map, NULL));
        assert_int_equal(map.cell_bytes, 2 * page);
        assert_int_equal(map.cells.count, 3);
        assert_int_equal(map.cells.items[0], 25);
        heap_map_free(&map);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_are_whole_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
