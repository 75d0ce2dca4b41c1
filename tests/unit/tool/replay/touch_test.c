// SPDX-License-Identifier: Apache-2.0
// How far blocks of a replay are written to, by looks at pages that are made up: of places that are
// new, of places where older blocks were, of large blocks, of older logs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tool/replay/touch.h"

enum { PAGE = 4096, CELL = 7, OTHER = 8, LOOK_MS = 100, STEP = 8208, BLOCK = 8192 };

static struct live_block block_at(uint64_t address, uint64_t size, uint32_t cell, uint64_t number) {
    return (struct live_block){.address = address, .size = size, .cell = cell, .number = number};
}

static struct live_block allocate(struct touch *touch, uint64_t address, uint64_t size,
                                  uint32_t cell, uint64_t number) {
    struct live_block block = block_at(address, size, cell, number);
    assert_true(touch_follow(touch, &block, NULL));
    return block;
}

static void look(struct touch *touch, const struct live_block *block, uint64_t pages) {
    const struct event event = {.flags = CAIRN_EVENT_TOUCHED,
                                .address = block->address,
                                .cell = block->cell,
                                .size = pages,
                                .ms = LOOK_MS};
    assert_true(touch_look(touch, &event, block));
}

static bool is_assumed;  // of the block that was asked for last

static uint64_t touched(struct touch *touch, uint64_t number, uint64_t size, uint32_t cell) {
    const struct event event = {.flags = CAIRN_EVENT_ALLOC, .cell = cell, .size = size};
    uint64_t bytes = UINT64_MAX;
    is_assumed = true;
    return touch_bytes(touch, number, &event, &bytes, &is_assumed) ? bytes : UINT64_MAX;
}

// Reserved and never used, between small blocks that are: pages at their ends say nothing.
static void test_new_places(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    uint64_t address = 0x10000010;
    for (uint64_t i = 0; i < 200; i++, address += STEP + 64) {
        struct live_block block = allocate(&touch, address, BLOCK, CELL, i);
        allocate(&touch, address + STEP, 48, OTHER, i);
        look(&touch, &block, 0);
    }
    assert_true(touch_end(&touch));
    for (uint64_t i = 0; i < 200; i++) assert_int_equal(touched(&touch, i, BLOCK, CELL), 0);
    assert_int_equal(touched(&touch, 1, BLOCK, OTHER), UINT64_MAX);
    assert_int_equal(touched(&touch, 1, PAGE - 1, CELL), UINT64_MAX);
    touch_free(&touch);
}

// Where other blocks were before, pages are resident whatever these do.
static void test_places_that_were_used(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    uint64_t address = 0x10000010;
    for (uint64_t i = 0; i < 200; i++, address += STEP) {
        if (i % 2) allocate(&touch, address, BLOCK, OTHER, 0);
        struct live_block block = allocate(&touch, address, BLOCK, CELL, i);
        assert_int_equal(block.is_marked, i % 2 == 0);
        look(&touch, &block, i % 2);
    }
    assert_true(touch_end(&touch));
    for (uint64_t i = 0; i < 200; i++) assert_int_equal(touched(&touch, i, BLOCK, CELL), 0);
    for (uint64_t i = 200; i < 300; i++) assert_int_equal(touched(&touch, i, BLOCK, CELL), 0);
    touch_free(&touch);
}

// Of a stack that is seen only where older blocks were, it is not known who wrote to the pages.
static void test_used_places_alone(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    uint64_t address = 0x10000010;
    for (uint64_t i = 0; i < 200; i++, address += STEP) {
        allocate(&touch, address, BLOCK, OTHER, 0);
        struct live_block block = allocate(&touch, address, BLOCK, CELL, i);
        look(&touch, &block, 1);
    }
    for (uint64_t i = 200; i < 300; i++, address += STEP) {
        struct live_block block = allocate(&touch, address, BLOCK, OTHER, i);
        look(&touch, &block, 1);
    }
    assert_true(touch_end(&touch));
    assert_int_equal(touched(&touch, 300, BLOCK, CELL), BLOCK);
    assert_true(is_assumed);
    assert_int_equal(touched(&touch, 301, BLOCK, OTHER), BLOCK);
    assert_false(is_assumed);
    touch_free(&touch);
}

// Half of the blocks are filled, and half are not used: so are those of the replay.
static void test_filled_or_not(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    enum { SIZE = 16 * PAGE - 32, COUNT = 1000 };
    uint64_t filled = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        struct live_block block = allocate(&touch, (i + 1) << 20, SIZE, CELL, i);
        look(&touch, &block, i % 2 ? 15 : 0);
    }
    assert_true(touch_end(&touch));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t bytes = touched(&touch, COUNT + i, SIZE, CELL);
        assert_true(bytes == 0 || bytes == SIZE);
        filled += bytes != 0;
    }
    assert_in_range(filled, COUNT * 4 / 10, COUNT * 6 / 10);
    touch_free(&touch);
}

// A quarter of each is written to.
static void test_first_part(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    enum { SIZE = 9 * PAGE };
    for (uint64_t i = 0; i < 64; i++) {
        struct live_block block = allocate(&touch, (i + 1) << 20, SIZE, CELL, i);
        look(&touch, &block, 2);
    }
    assert_true(touch_end(&touch));
    for (uint64_t i = 0; i < 64; i++)
        assert_in_range(touched(&touch, 100 + i, SIZE, CELL), PAGE + 1, 3 * PAGE);
    touch_free(&touch);
}

// One that is large is touched as it was itself, as far as it was seen at last.
static void test_large_blocks(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    enum { SIZE = 1 << 20, PAGES = SIZE / PAGE };
    for (uint64_t i = 0; i < 10; i++) {
        struct live_block block = allocate(&touch, (i + 1) << 24, SIZE, CELL, 2 * i);
        look(&touch, &block, i * 10);
        look(&touch, &block, i * 20);
        look(&touch, &block, i * 15);
    }
    assert_true(touch_end(&touch));
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(touched(&touch, 2 * i, SIZE, CELL), i * 20 * PAGE);
    touch_free(&touch);
}

// A block that grows where it is has the part that it had; one that just came is not counted, and
// neither is another one than was looked at.
static void test_growth_and_youth(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    struct live_block small = allocate(&touch, 0x100000, 4 * PAGE, CELL, 1);
    struct live_block grown = block_at(0x100000, 8 * PAGE, CELL, 2);
    assert_true(touch_follow(&touch, &grown, &small));
    assert_true(grown.is_marked);
    struct live_block again = block_at(0x100000, 8 * PAGE, CELL, 3);
    assert_true(touch_follow(&touch, &again, NULL));
    assert_false(again.is_marked);
    grown.ms = LOOK_MS;
    look(&touch, &grown, 8);
    const struct event other = {.flags = CAIRN_EVENT_TOUCHED, .cell = OTHER, .ms = LOOK_MS};
    assert_true(touch_look(&touch, &other, &small));
    assert_true(touch_look(&touch, &other, NULL));
    assert_true(touch_end(&touch));
    assert_false(touch_is_known(&touch));
    touch_free(&touch);
}

// A damaged log may say any size: such a block is not followed page by page.
static void test_sizes_that_cannot_be(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE};
    struct live_block block = allocate(&touch, 0x100000, UINT64_C(1) << 62, CELL, 1);
    assert_false(block.is_marked);
    assert_int_equal(touch.covered.count, 0);
    block = allocate(&touch, 0x100000, UINT64_MAX - 0x80000, CELL, 2);
    assert_false(block.is_marked);
    look(&touch, &block, 3);
    assert_true(touch_end(&touch));
    touch_free(&touch);
}

// Looks of older logs say how much of a cell's blocks is resident; of a log that began late no
// place is new.
static void test_older_and_late_logs(void **state) {
    (void)state;
    struct touch touch = {.page_bytes = PAGE, .is_late = true};
    const struct event event = {
        .flags = CAIRN_EVENT_RESIDENT, .address = 1 << 20, .size = 1 << 20, .cell = CELL};
    assert_true(touch_look(&touch, &event, NULL));
    struct live_block block = allocate(&touch, 1 << 20, 1 << 20, OTHER, 1);
    assert_false(block.is_marked);
    look(&touch, &block, 0);
    assert_true(touch_end(&touch));
    assert_int_equal(touched(&touch, 1, BLOCK, CELL), BLOCK);
    assert_int_equal(touched(&touch, 1, BLOCK, OTHER), 0);
    touch_free(&touch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_places),           cmocka_unit_test(test_places_that_were_used),
        cmocka_unit_test(test_used_places_alone),    cmocka_unit_test(test_filled_or_not),
        cmocka_unit_test(test_first_part),           cmocka_unit_test(test_large_blocks),
        cmocka_unit_test(test_growth_and_youth),     cmocka_unit_test(test_older_and_late_logs),
        cmocka_unit_test(test_sizes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
