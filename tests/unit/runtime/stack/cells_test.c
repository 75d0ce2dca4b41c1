// SPDX-License-Identifier: Apache-2.0
// Counters and the lazily kept peak, against a copy of all values taken at each new maximum.
#include "runtime/stack/cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/record/totals.h"
#include "runtime/sink/sink.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { CELLS = 100, FIRST = CELLS_SHARED, BLOCKS = 2000, EVENTS = 2000000, CHECK_EVERY = 400 };

static struct value_log value_log;

struct held_values {
    int64_t bytes[CELLS];
    int64_t blocks[CELLS];
};

static struct {
    uint64_t seed;
    struct held_values live, peak;
    int64_t total, highest;
    uint32_t count;
    struct {
        uint32_t cell;
        uint64_t size;
    } blocks[BLOCKS];
} model;

static struct thread thread;
static struct cairn_thread thread_record;

static void start(uint64_t seed) {
    memset(&model, 0, sizeof model);
    model.seed = seed;
    recording_start(1 << 10, 1 << 12);
    sink.header = &recording_header;
    thread_record = (struct cairn_thread){0};
    thread = (struct thread){.record = &thread_record};
    assert_int_equal(cells_take_blocks(7, CELLS / CAIRN_CELL_BLOCK + 1), FIRST);
}

static void do_alloc(uint32_t cell, uint64_t size) {
    cell_alloc(&value_log, FIRST + cell, size);
    thread_record.allocations++;
    thread_record.net_bytes += (int64_t)size;
    model.blocks[model.count].cell = cell;
    model.blocks[model.count++].size = size;
    model.live.bytes[cell] += (int64_t)size;
    model.live.blocks[cell]++;
    model.total += (int64_t)size;
}

// A free that leaves the highest total so far makes it the peak.
static void do_free(uint32_t index) {
    uint32_t cell = model.blocks[index].cell;
    uint64_t size = model.blocks[index].size;
    if (thread_record.net_bytes > thread.peak_bytes) totals_peak_left(&thread);
    cell_free(&value_log, FIRST + cell, size);
    thread_record.frees++;
    thread_record.net_bytes -= (int64_t)size;
    if (model.total > model.highest) {
        model.highest = model.total;
        model.peak = model.live;
    }
    model.live.bytes[cell] -= (int64_t)size;
    model.live.blocks[cell]--;
    model.total -= (int64_t)size;
    model.blocks[index] = model.blocks[--model.count];
}

// The reader's rule, format.h.
static void check_values(void) {
    const struct cairn_totals *totals = &recording_header.totals;
    int64_t sum = 0;
    for (uint32_t i = 0; i < CELLS; i++) {
        const struct cairn_cell *cell = &cells.items[FIRST + i];
        bool is_saved = (int32_t)(cell->epoch - totals->peak_epoch) >= 0;
        int64_t bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes);
        int64_t blocks = (int64_t)cell->calls - cell->frees;
        assert_int_equal(bytes, model.live.bytes[i]);
        assert_int_equal(blocks, model.live.blocks[i]);
        assert_int_equal(is_saved ? cell->peak_bytes : bytes, model.peak.bytes[i]);
        assert_int_equal(is_saved ? cell->peak_blocks : blocks, model.peak.blocks[i]);
        sum += model.peak.bytes[i];
    }
    assert_int_equal(totals->peak_bytes, model.highest);
    assert_int_equal(totals->peak_bytes, sum);
}

// 5,000 times 100 cells are compared. The share of allocations swings and sizes grow, so that new
// maxima come in bursts with quiet times between.
static void test_peak_of_every_cell(void **state) {
    (void)state;
    const int swing = 20000, growth = 1000;
    start(1);
    for (int event = 0; event < EVENTS; event++) {
        unsigned percent = event / swing % 2 ? 40 : 60;
        uint64_t limit = 300 + (uint64_t)(event / growth);
        if (model.count < BLOCKS && (model.count == 0 || random_chance(&model.seed, percent)))
            do_alloc((uint32_t)random_below(&model.seed, CELLS),
                     random_below(&model.seed, random_chance(&model.seed, 1) ? 100000 : limit));
        else
            do_free((uint32_t)random_below(&model.seed, model.count));
        if (random_chance(&model.seed, 1)) recording_header.totals.epoch++;  // not for a peak
        if (event % CHECK_EVERY == 0 && model.highest) check_values();
    }
    assert_true(recording_header.totals.epoch > 500);
}

// The epoch's number wraps around.
static void test_epoch_wraps(void **state) {
    (void)state;
    start(2);
    recording_header.totals.epoch = recording_header.totals.peak_epoch = UINT32_MAX - 20;
    for (uint32_t i = 0; i < CELLS; i++) cells.items[FIRST + i].epoch = UINT32_MAX - 20;
    for (int i = 0; i < 1000; i++) {
        do_alloc((uint32_t)random_below(&model.seed, CELLS), 100 + (uint64_t)i);
        do_alloc((uint32_t)random_below(&model.seed, CELLS), 10);
        do_free(model.count - 1);
        check_values();
    }
    assert_true(recording_header.totals.epoch < UINT32_MAX / 2);
}

static uint64_t long_count(uint32_t low, uint16_t high) {
    return (uint64_t)high << 32 | low;
}

// Counts go on beyond 2^32, and the blocks at the peak are right across the border.
static void test_counts_beyond_32_bits(void **state) {
    (void)state;
    start(3);
    const uint32_t id = FIRST, near = UINT32_MAX - 5;
    struct cairn_cell *cell = &cells.items[id];
    cell->calls = near;
    cell->frees = near;
    cell_look_ahead(id);
    for (int i = 0; i < 20; i++) cell_alloc(&value_log, id, 1);
    assert_int_equal(long_count(cell->calls, cell_rare(id)->calls_high), (uint64_t)near + 20);
    recording_header.totals.peak_epoch = ++recording_header.totals.epoch;
    cell_free(&value_log, id, 1);
    assert_int_equal(cell->peak_blocks, 20);
    assert_int_equal(cell->peak_bytes, 20);
    for (int i = 0; i < 19; i++) cell_free(&value_log, id, 1);
    assert_int_equal(long_count(cell->frees, cell_rare(id)->frees_high), (uint64_t)near + 20);
    assert_int_equal(cell->peak_blocks, 20);
}

// Where nothing is left for the part above, a number stays at its end and does not begin anew.
static void test_no_room_beyond_32_bits(void **state) {
    (void)state;
    start(3);
    struct cairn_cell *cell = &cells.items[FIRST];
    cells.rare_region.is_full = 1;
    cell->calls = cell->frees = cell->temporary = UINT32_MAX - 1;
    for (int i = 0; i < 5; i++) {
        cell_count_alloc(cell, 1);
        cell_count_free(cell, 1);
        cell_count_temporary(cell);
    }
    assert_int_equal(cell->calls, UINT32_MAX);
    assert_int_equal(cell->frees, UINT32_MAX);
    assert_int_equal(cell->temporary, UINT32_MAX);
    assert_null(cell_rare(FIRST));
}

static void test_slack_and_temporary_beyond_32_bits(void **state) {
    (void)state;
    start(3);
    struct cairn_cell *cell = &cells.items[FIRST];
    cell->temporary = UINT32_MAX;
    uint64_t slack = 0;
    cell_rare_make(FIRST);
    cell_count_temporary(cell);
    for (int i = 0; i < 1000000; i++) {
        const uint32_t page = 4096;
        cell->slack_bytes += page;
        slack += page;
        if (i % 500 == 0) cell_look_ahead(FIRST);
    }
    assert_int_equal(long_count(cell->temporary, cell_rare(FIRST)->temporary_high), 1ull << 32);
    assert_int_equal(cell->slack_bytes + (uint64_t)cell_rare(FIRST)->slack_high * CAIRN_SLACK_UNIT,
                     slack);
    assert_ptr_equal(cell_rare_make(FIRST), cell_rare(FIRST));
    assert_ptr_not_equal(cell_rare_make(FIRST + 1), cell_rare(FIRST));
}

static void test_bytes_beyond_32_bits(void **state) {
    (void)state;
    start(4);
    const uint64_t huge = 1ull << 45;
    for (int i = 0; i < 100; i++) cell_alloc(&value_log, FIRST, huge);
    for (int i = 0; i < 99; i++) cell_free(&value_log, FIRST, huge);
    assert_int_equal(cells.items[FIRST].allocated_bytes, 100 * huge);
    assert_int_equal(cells.items[FIRST].allocated_bytes - cells.items[FIRST].freed_bytes, huge);
}

static void test_the_cell_of_lost_stacks(void **state) {
    (void)state;
    start(5);
    assert_int_equal(cell_owner(CAIRN_CELL_OTHER), CAIRN_SLOT_SHARED);
    for (int i = 0; i < 10; i++) cell_alloc(&value_log, CAIRN_CELL_OTHER, 5);
    recording_header.totals.peak_epoch = ++recording_header.totals.epoch;
    cell_free(&value_log, CAIRN_CELL_OTHER, 5);
    assert_int_equal(cells.items[CAIRN_CELL_OTHER].allocated_bytes, 50);
    assert_int_equal(cells.items[CAIRN_CELL_OTHER].frees, 1);
    assert_int_equal(cells.items[CAIRN_CELL_OTHER].peak_bytes, 50);
    assert_int_equal(cells.items[CAIRN_CELL_OTHER].peak_blocks, 10);
}

static void test_blocks_of_cells_end(void **state) {
    (void)state;
    recording_start(1 << 10, 1 << 12);
    for (uint32_t id = FIRST; id < 1 << 10; id += CAIRN_CELL_BLOCK) {
        assert_int_equal(cells_take_blocks((uint16_t)(id / CAIRN_CELL_BLOCK), 1), id);
        assert_int_equal(cell_owner(id), id / CAIRN_CELL_BLOCK);
        assert_int_equal(cell_owner(id + CAIRN_CELL_BLOCK - 1), id / CAIRN_CELL_BLOCK);
    }
    assert_int_equal(cells_take_blocks(1, 1), 0);
    recording_start(1 << 10, 1 << 12);
    cells.id_limit = FIRST + 3 * CAIRN_CELL_BLOCK;
    assert_int_equal(cells_take_blocks(1, 1), FIRST);
    assert_int_equal(cells_take_blocks(2, 2), FIRST + CAIRN_CELL_BLOCK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(cell_owner(FIRST + i * CAIRN_CELL_BLOCK), i ? 2 : 1);
    assert_int_equal(cells_take_blocks(1, 1), 0);
    assert_int_equal(cells_take_blocks(1, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak_of_every_cell),
        cmocka_unit_test(test_epoch_wraps),
        cmocka_unit_test(test_counts_beyond_32_bits),
        cmocka_unit_test(test_slack_and_temporary_beyond_32_bits),
        cmocka_unit_test(test_no_room_beyond_32_bits),
        cmocka_unit_test(test_bytes_beyond_32_bits),
        cmocka_unit_test(test_the_cell_of_lost_stacks),
        cmocka_unit_test(test_blocks_of_cells_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
