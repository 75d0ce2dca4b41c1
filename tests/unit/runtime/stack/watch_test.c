// SPDX-License-Identifier: Apache-2.0
// Shares of short-lived blocks against a schedule: blocks that are freed after a known number of
// allocations of their thread.
#include "runtime/stack/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/stack/recording.h"

enum { CELL = CELLS_SHARED, KINDS = 4, ROUNDS = 400000, LONGEST = 4096 };
// In rounds of KINDS allocations: they are freed after 3, 255, 259 and 4095 further ones.
static const int lives[KINDS] = {1, 64, 65, 1024};
static char blocks[KINDS][LONGEST];

// As the events do it.
static void allocate(struct watch *watch, const void *block, uint32_t cell, uint64_t *calls) {
    bool is_watched = watch_is_due(watch) && watch_renew(watch);
    ++*calls;
    if (is_watched) watch_begin(watch, block, cell, *calls);
}

static void give_back(struct watch *watch, const void *block, uint32_t cell, uint64_t calls) {
    if (watch->block == block) watch_end(watch, cell, calls);
}

static void test_schedule(void **state) {
    (void)state;
    struct watch watch = {0};
    uint64_t calls = 0, watched = 0;
    recording_start(1024, 4096);
    assert_int_equal(cells_take_blocks(0, 1), CELL);
    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            const void *block = &blocks[kind][round % lives[kind]];
            if (round >= lives[kind]) give_back(&watch, block, CELL + (uint32_t)kind, calls);
            allocate(&watch, block, CELL + (uint32_t)kind, &calls);
        }
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const struct cairn_cell_rare *rare = cell_rare(CELL + kind);
        watched += rare->watched;
        // loops of four do not always meet the same kind
        assert_in_range(rare->watched, ROUNDS / CAIRN_WATCHED_EVERY * 8 / 10,
                        ROUNDS / CAIRN_WATCHED_EVERY * 12 / 10);
        if (kind < 2) assert_in_range(rare->short_lived, rare->watched - 1, rare->watched);
        if (kind >= 2) assert_int_equal(rare->short_lived, 0);
    }
    assert_in_range(watched, calls / CAIRN_WATCHED_EVERY * 95 / 100,
                    calls / CAIRN_WATCHED_EVERY * 105 / 100);
}

static void take(struct watch *watch, const void *block, uint32_t cell, uint64_t calls) {
    *watch = (struct watch){.random = 1};
    watch_begin(watch, block, cell, calls);
}

static void test_odd_ends(void **state) {
    (void)state;
    struct watch watch;
    recording_start(1024, 4096);
    assert_int_equal(cells_take_blocks(0, 1), CELL);
    const struct cairn_cell_rare *rare = cell_rare_make(CELL);
    take(&watch, blocks, CELL, 10);
    watch_end(&watch, CELL + 1, 11);  // of another cell: the address came again
    assert_null(watch.block);
    assert_int_equal(rare->watched, 1);
    assert_int_equal(rare->short_lived, 0);
    take(&watch, blocks, CELL, 10);
    watch_drop(&watch);
    assert_null(watch.block);
    assert_int_equal(rare->watched, 1);
    take(&watch, blocks, CAIRN_CELL_OTHER, 10);
    assert_null(watch.block);
    // the first time is not taken, but waits no longer than others
    watch = (struct watch){0};
    assert_true(watch_is_due(&watch));
    assert_false(watch_renew(&watch));
    assert_in_range(watch.left, 1, CAIRN_WATCHED_EVERY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_odd_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
