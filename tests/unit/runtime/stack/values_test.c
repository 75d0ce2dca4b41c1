// SPDX-License-Identifier: Apache-2.0
// Values at snapshots, against a copy of all cells taken at each snapshot, while snapshots are left
// out and room runs short.
#include "runtime/stack/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/snapshots.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { CELLS = 300, FIRST = CELLS_SHARED, SNAPSHOTS = 2000, CHANGES = 90, TID = 7 };

static struct value_log value_log;
static int64_t held[SNAPSHOTS][CELLS];  // by epoch of the snapshot, as far as there is one
static uint32_t epochs[SNAPSHOTS];

static void start(void) {
    memset(&value_log, 0, sizeof value_log);
    recording_start(4096, 4096);
    assert_int_equal(cells_take_blocks(0, CELLS / CAIRN_CELL_BLOCK + 1), FIRST);
    recording_header.pace.every_bytes = 1;
    recording_header.pace.step_permille = 1;
}

static struct cairn_snapshot *table_snapshots(void) {
    return (struct cairn_snapshot *)recording_regions[10].base;
}

static bool take(enum cairn_snapshot_reason reason) {
    struct cairn_snapshot_table table = {&recording_header, table_snapshots(), &recording_used[10]};
    const struct cairn_snapshot wanted = {.reason = reason};
    return cairn_snapshot_take(&table, &wanted, TID) == CAIRN_SNAPSHOT_TAKEN;
}

static void change(uint64_t *seed) {
    uint32_t id = FIRST + (uint32_t)random_below(seed, CELLS);
    if (cells.items[id].calls > cells.items[id].frees && random_chance(seed, 2))
        cell_free(&value_log, id, 10);
    else
        cell_alloc(&value_log, id, 10);
}

// What a reader makes of it (docs/reference/format.md).
static int64_t value_at(uint32_t id, uint32_t epoch) {
    const struct cairn_value *list = (const struct cairn_value *)values.entries.base;
    for (uint64_t i = 0; i < recording_used[9] / sizeof *list; i++)
        if (list[i].cell == id && list[i].from_epoch < epoch && epoch <= list[i].to_epoch)
            return list[i].bytes;
    const struct cairn_cell *cell = &cells.items[id];
    return cell->epoch < epoch ? (int64_t)(cell->allocated_bytes - cell->freed_bytes) : 0;
}

static void check_snapshots(void) {
    uint64_t count = recording_used[10] / sizeof(struct cairn_snapshot);
    assert_true(count > 0 && count <= CAIRN_SNAPSHOT_LIMIT);
    for (uint64_t i = 0; i < count; i += 5) {
        uint32_t number = 0, epoch = table_snapshots()[i].epoch;
        while (epochs[number] != epoch) number++;
        for (uint32_t cell = 0; cell < CELLS; cell++)
            assert_int_equal(value_at(FIRST + cell, epoch), held[number][cell]);
    }
}

static void run(int snapshot_limit) {
    uint64_t seed = 11;
    for (int number = 0; number < snapshot_limit; number++) {
        for (int i = 0; i < CHANGES; i++) change(&seed);
        if (random_chance(&seed, 3))
            recording_header.totals.peak_epoch = ++recording_header.totals.epoch;
        for (uint32_t cell = 0; cell < CELLS; cell++)
            held[number][cell] = (int64_t)(cells.items[FIRST + cell].allocated_bytes -
                                           cells.items[FIRST + cell].freed_bytes);
        assert_true(take(number % 100 ? CAIRN_SNAPSHOT_CHURN : CAIRN_SNAPSHOT_ASKED));
        epochs[number] = recording_header.totals.epoch;
    }
}

static void test_values_at_snapshots(void **state) {
    (void)state;
    start();
    run(SNAPSHOTS);
    assert_int_equal(recording_header.pace.missing_values, 0);
    check_snapshots();
}

// Values that no moment is left for make room: far less is taken than was saved.
static void test_room_is_used_again(void **state) {
    (void)state;
    start();
    run(SNAPSHOTS);
    uint64_t saved = (uint64_t)SNAPSHOTS * CHANGES / 2 * sizeof(struct cairn_value);
    assert_true(recording_used[9] < saved / 2);
}

// Without room the snapshots say how many values they lack, and nothing else is wrong.
static void test_no_room(void **state) {
    (void)state;
    start();
    uint64_t seed = 3;
    for (int i = 0; i < CHANGES; i++) change(&seed);
    values.entries.is_full = 1;
    assert_true(take(CAIRN_SNAPSHOT_ASKED));
    for (int i = 0; i < CHANGES; i++) change(&seed);
    assert_true(recording_header.pace.missing_values > 0);
    assert_int_equal(table_snapshots()[0].missing_values, recording_header.pace.missing_values);
    uint64_t missing = recording_header.pace.missing_values;
    assert_true(take(CAIRN_SNAPSHOT_ASKED));
    for (int i = 0; i < CHANGES; i++) change(&seed);
    // cells that had not changed in between lack the value of both
    assert_true(table_snapshots()[0].missing_values >= missing);
    assert_int_equal(table_snapshots()[1].missing_values,
                     recording_header.pace.missing_values - missing);
}

// Where blocks are sampled each value has beside it what was behind it, as it stood then, also
// that of a cell which held nothing.
static void test_samples_beside_values(void **state) {
    (void)state;
    start();
    values.samples = recording_region(12, 4096 * sizeof(struct cairn_sample_value));
    values.sample_cells = recording_region(13, 4096 * sizeof(struct cairn_sample_entry));
    struct cairn_sample_entry *beside =
        region_take(&values.sample_cells, (FIRST + 1) * sizeof *beside);
    cell_alloc(&value_log, FIRST, 100);
    cell_alloc(&value_log, FIRST + 1, 50);
    beside[FIRST].sums = (struct cairn_sample_cell){7, 2, 1.5, 0.5, 2.5, 0.25, 0, 0, 0};
    assert_true(take(CAIRN_SNAPSHOT_ASKED));
    cell_free(&value_log, FIRST, 100);
    cell_free(&value_log, FIRST + 1, 50);
    beside[FIRST].sums.extra_frees = 7;
    assert_true(take(CAIRN_SNAPSHOT_ASKED));
    cell_alloc(&value_log, FIRST, 1);
    const struct cairn_value *list = (const struct cairn_value *)values.entries.base;
    const struct cairn_sample_value *samples =
        (const struct cairn_sample_value *)values.samples.base;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < recording_used[9] / sizeof *list; i++) {
        if (!list[i].cell) continue;
        kept++;
        assert_true((i + 1) * sizeof *samples <= recording_used[12]);
        assert_int_equal(samples[i].calls - samples[i].frees, list[i].blocks);
        assert_int_equal(samples[i].calls, 1);
        if (list[i].cell != FIRST) {  // its samples have no entry
            assert_true(samples[i].allocated_variance == 0);
            continue;
        }
        assert_int_equal(samples[i].extra, list[i].blocks ? 5 : 0);
        assert_true(samples[i].allocated_variance == 1.5 && samples[i].freed_variance == 0.5);
        assert_true(samples[i].calls_variance == 2.5 && samples[i].frees_variance == 0.25);
    }
    assert_int_equal(kept, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_at_snapshots),
        cmocka_unit_test(test_room_is_used_again),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_samples_beside_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
