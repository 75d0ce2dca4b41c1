// SPDX-License-Identifier: Apache-2.0
// Values of made-up recordings, worked out by hand.
#include "tool/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/model/measure.h"
#include "tool/model/threads.h"

static struct making making;
static struct recording recording;
static struct profile profile;
static uint8_t *bytes;

enum { PROGRAM = 0x400000, LIBRARY_LOW = 0x7f000000 };
static const uint64_t library = (uint64_t)LIBRARY_LOW << 16;

// Who asks a cell for one thing is told what all of it says.
static void check_parts_of_cells(void) {
    size_t count = recording_count(&recording, CAIRN_SECTION_CELLS);
    struct recorded_cell cell;
    uint32_t record;
    int64_t left;
    for (size_t id = 0; id < count; id++) {
        assert_true(recording_cell(&recording, id, &cell));
        bool is_used = cell.calls || cell.frees || cell.freed_bytes;
        assert_int_equal(recording_cell_is_used(&recording, id), is_used);
        assert_true(recording_cell_left(&recording, id, &left));
        assert_int_equal(left, (int64_t)(cell.allocated_bytes - cell.freed_bytes));
        assert_true(recording_cell_record(&recording, id, &record));
        assert_int_equal(record, cell.record);
    }
    assert_false(recording_cell_is_used(&recording, count));
    assert_false(recording_cell_left(&recording, count, &left));
    assert_false(recording_cell_record(&recording, count, &record));
}

// A profile without figures has the same tree and places, in the same order.
static void check_places(void) {
    const struct damage damage = recording.damage;
    struct profile places;
    recording.damage = (struct damage){0};
    assert_true(profile_build_places(&recording, &places, NULL));
    recording.damage = damage;
    assert_int_equal(places.modules.count, profile.modules.count);
    assert_int_equal(places.places.list.count, profile.places.list.count);
    for (size_t i = 0; i < places.places.list.count; i++) {
        const struct place *a = &places.places.list.items[i], *b = &profile.places.list.items[i];
        assert_true(a->module == b->module && a->address == b->address && a->cut == b->cut);
    }
    assert_int_equal(places.tree.nodes.count, profile.tree.nodes.count);
    for (size_t i = 0; i < places.tree.nodes.count; i++) {
        const struct tree_node *a = &places.tree.nodes.items[i], *b = &profile.tree.nodes.items[i];
        assert_true(a->parent == b->parent && a->place == b->place);
    }
    profile_free(&places);
}

static void build(void) {
    size_t size;
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    check_parts_of_cells();
    check_places();
}

static int teardown(void **state) {
    (void)state;
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    bytes = NULL;
    return 0;
}

static int setup(void **state) {
    (void)state;
    making_start(&making);
    making_module(&making, "/bin/program", PROGRAM, 0x10000, 0, 0x11);
    making_module(&making, "/lib/library.so", library, 0x10000, library, 0x22);
    making_thread(&making, 100, "main");
    making_thread(&making, 101, "worker");
    return 0;
}

static uint32_t stack_of(uint32_t thread, uint64_t outer, uint64_t inner) {
    const uint64_t addresses[] = {outer, inner};
    return making_stack(&making, thread, addresses, 2);
}

// The place `depth` frames from the innermost of a stack.
static const struct place *place_at(const struct stack *stack, unsigned depth) {
    uint32_t node = stack->node;
    while (depth--) node = profile.tree.nodes.items[node].parent;
    return &profile.places.list.items[profile.tree.nodes.items[node].place];
}

static void test_one_stack(void **state) {
    (void)state;
    making_book(&making, stack_of(0, PROGRAM + 0x100, library + 0x200), 3, 300, 1, 50);
    build();
    assert_int_equal(profile.stack_count, 1);
    const struct stack *stack = &profile.stacks[0];
    assert_int_equal(stack->allocations, 3);
    assert_int_equal(stack->allocated_bytes, 300);
    assert_int_equal(stack->frees, 1);
    assert_int_equal(stack->freed_bytes, 50);
    assert_int_equal(stack->exit_bytes, 250);
    assert_int_equal(stack->exit_blocks, 2);
    assert_int_equal(place_at(stack, 0)->module, 1);
    assert_int_equal(place_at(stack, 0)->address, 0x1ff);  // the call, in the file
    assert_int_equal(place_at(stack, 1)->module, 0);
    assert_int_equal(place_at(stack, 1)->address, PROGRAM + 0xff);  // bias 0
    assert_true(profile_is_exact(&profile));
}

// No counted peak is as high as what is live: the peak is the end.
static void test_peak_is_at_the_end(void **state) {
    (void)state;
    uint32_t cell = stack_of(0, PROGRAM + 0x100, library + 0x200);
    making_book(&making, cell, 1, 100, 0, 0);
    making_peak(&making, 5);
    making_book(&making, cell, 1, 1, 0, 0);
    build();
    assert_true(profile.peak.is_at_end);
    assert_int_equal(profile.peak.bytes, 101);
    assert_int_equal(profile.peak.blocks, 2);
    assert_int_equal(profile.peak.at_ns, making.header.end_ns);
    assert_int_equal(profile.peak.error_bytes, 0);
}

// Of a process that goes on the clock of the tool says what is now.
static void test_peak_is_now(void **state) {
    (void)state;
    uint32_t cell = stack_of(0, PROGRAM + 0x100, library + 0x200);
    making_book(&making, cell, 1, 100, 0, 0);
    making.header.end_ns = 0;
    making.header.control.clock_ms = 5120;
    build();
    assert_true(profile.peak.is_at_end);
    assert_int_equal(profile.peak.at_ns, 5120000000);
}

// One cell changed after the peak (its saved value counts), one did not (its live value does),
// one came later (zero counts).
static void test_peak_in_the_middle(void **state) {
    (void)state;
    uint32_t changed = stack_of(0, PROGRAM + 0x100, library + 0x200);
    uint32_t same = stack_of(0, PROGRAM + 0x100, library + 0x300);
    uint32_t late = stack_of(0, PROGRAM + 0x100, library + 0x400);
    making_book(&making, changed, 10, 1000, 0, 0);
    making_book(&making, same, 1, 64, 0, 0);
    making_peak(&making, 77);
    making_book(&making, changed, 2, 200, 11, 1100);
    making_book(&making, late, 1, 500, 0, 0);
    build();
    assert_false(profile.peak.is_at_end);
    assert_int_equal(profile.peak.bytes, 1064);
    assert_int_equal(profile.peak.blocks, 11);
    assert_int_equal(profile.peak.at_ns, 77);
    assert_int_equal(profile.peak.error_bytes, 0);
    assert_int_equal(profile.stacks[0].peak_bytes, 1000);
    assert_int_equal(profile.stacks[1].peak_bytes, 64);
    assert_int_equal(profile.stacks[2].peak_bytes, 0);
    assert_int_equal(profile.exit_bytes, 100 + 64 + 500);
}

// Two peaks: a cell saved at the first and not touched since counts with its live value.
static void test_saved_value_of_an_older_peak(void **state) {
    (void)state;
    uint32_t a = stack_of(0, PROGRAM + 0x100, library + 0x200);
    uint32_t b = stack_of(0, PROGRAM + 0x100, library + 0x300);
    making_book(&making, a, 1, 100, 0, 0);
    making_peak(&making, 1);
    making_book(&making, a, 0, 0, 1, 100);
    making_book(&making, a, 1, 30, 0, 0);  // saved for the first peak: 100
    making_book(&making, b, 1, 200, 0, 0);
    making_peak(&making, 2);
    making_book(&making, b, 0, 0, 1, 200);
    build();
    assert_int_equal(profile.peak.bytes, 230);
    assert_int_equal(profile.stacks[0].peak_bytes, 30);
    assert_int_equal(profile.stacks[1].peak_bytes, 200);
}

static void test_threads_merge_and_foreign_frees(void **state) {
    (void)state;
    uint32_t mine = stack_of(0, PROGRAM + 0x100, library + 0x200);
    uint32_t theirs = stack_of(1, PROGRAM + 0x100, library + 0x200);
    making_book(&making, mine, 10, 1000, 0, 0);
    making_book(&making, theirs, 1, 7, 0, 0);
    uint32_t foreign = making_foreign(&making, 1, mine);
    making_book(&making, foreign, 0, 0, 4, 400);
    build();
    assert_int_equal(profile.stack_count, 1);
    const struct stack *stack = &profile.stacks[0];
    assert_int_equal(stack->allocations, 11);
    assert_int_equal(stack->frees, 4);
    assert_int_equal(stack->exit_bytes, 607);
    // the blocks that are left belong to the threads that allocated them
    assert_int_equal(profile.threads[0].exit_bytes, 600);
    assert_int_equal(profile.threads[1].exit_bytes, 7);
    assert_int_equal(profile.peak.blocks, 7);
}

static void test_error_of_threaded_peaks(void **state) {
    (void)state;
    uint32_t cell = stack_of(0, PROGRAM + 0x100, library + 0x200);
    making_book(&making, cell, 1, 1000, 0, 0);
    making_peak(&making, 1);
    making.header.totals.peak_bytes += 24;  // published by another thread, not seen in the cells
    making.header.totals.is_threaded = 1;
    making.header.totals.batch_bytes = 256;
    build();
    assert_int_equal(profile.peak.bytes, 1000);
    assert_int_equal(profile.peak.error_bytes, 24 + 2 * 2 * 256);
}

// The counter was ahead of what cells saved at the peak, and more is live now than they saved: the
// peak is no lower than what is live.
static void test_peak_of_threads_below_what_is_live(void **state) {
    (void)state;
    uint32_t cell = stack_of(0, PROGRAM + 0x100, library + 0x200);
    making_book(&making, cell, 10, 1000, 0, 0);
    making_peak(&making, 1);
    making.header.totals.peak_bytes += 24;
    making.header.totals.is_threaded = 1;
    making.header.totals.batch_bytes = 256;
    making_book(&making, cell, 1, 20, 0, 0);
    build();
    assert_true(profile.peak.is_at_end);
    assert_int_equal(profile.exit_bytes, 1020);
    assert_int_equal(profile.peak.bytes, 1020);
    assert_int_equal(profile.peak.blocks, 11);
    assert_int_equal(profile.peak.error_bytes, 4 + 2 * 2 * 256);
}

static void test_slot_that_threads_handed_on(void **state) {
    (void)state;
    uint32_t cell = stack_of(0, PROGRAM + 0x100, library + 0x200);
    making_book(&making, cell, 10, 1000, 1, 100);
    making.threads[1].slot = 0;  // the second thread had the slot after the first
    making.threads[0].allocated_bytes = 800;
    making.threads[1].allocated_bytes = 200;
    build();
    // of 900 bytes either may have some that the other had
    struct thread_row rows[4];
    char text[THREAD_TEXT_BYTES];
    size_t count;
    assert_true(profile.threads[0].is_shared && profile.threads[1].is_shared);
    assert_true(threads_rows(&profile, rows, &count));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].sums.exit_bytes, 900);
    assert_int_equal(rows[0].sums.allocated_bytes, 1000);
    assert_int_equal(rows[0].sharing_count, 2);
    memcpy(rows[0].sums.name, "job0", sizeof "job0");
    thread_row_text(&rows[0], text, sizeof text);
    assert_non_null(strstr(text, "(2 threads share an account)"));
}

// Of two threads that had the slot one after the other, with 1,000 bytes between them.
static void check_known(const uint64_t *allocated, uint64_t freed, const int64_t *left) {
    struct thread_row rows[4];
    size_t count;
    uint32_t cell = stack_of(0, PROGRAM + 0x100, library + 0x200);
    making_book(&making, cell, 10, 1000, 10, freed);
    making.threads[1].slot = 0;
    making.threads[0].allocated_bytes = allocated[0];
    making.threads[1].allocated_bytes = allocated[1];
    build();
    assert_true(threads_rows(&profile, rows, &count));
    assert_int_equal(count, 2);
    for (int thread = 0; thread < 2; thread++) {
        assert_false(profile.threads[thread].is_shared);
        assert_int_equal(rows[thread].sums.exit_bytes, left[thread]);
    }
}

static void test_a_slot_of_which_nothing_is_left(void **state) {
    (void)state;
    check_known((const uint64_t[]){800, 200}, 1000, (const int64_t[]){0, 0});
}

static void test_a_slot_of_which_all_is_left(void **state) {
    (void)state;
    check_known((const uint64_t[]){800, 200}, 0, (const int64_t[]){800, 200});
}

static void test_a_slot_in_which_one_allocated(void **state) {
    (void)state;
    check_known((const uint64_t[]){1000, 0}, 300, (const int64_t[]){700, 0});
}

// Prefix sharing by records: a cell that keeps a part of an older stack is the same stack as one
// written out in full.
static void test_records_that_build_on_others(void **state) {
    (void)state;
    const uint64_t full[] = {PROGRAM + 0x10, PROGRAM + 0x20, PROGRAM + 0x31};
    uint32_t first = making_stack(
        &making, 0, (const uint64_t[]){PROGRAM + 0x10, PROGRAM + 0x20, PROGRAM + 0x30}, 3);
    const uint32_t code = making_code(&making, PROGRAM + 0x31);
    uint32_t second = making_cell(&making, 0, first, 2, &code, 1, 1);
    uint32_t third = making_stack(&making, 1, full, 3);
    uint32_t shorter = making_cell(&making, 1, second, 1, NULL, 0, 0);
    making_book(&making, second, 1, 1, 0, 0);
    making_book(&making, third, 1, 2, 0, 0);
    making_book(&making, shorter, 1, 4, 0, 0);
    build();
    assert_int_equal(profile.stack_count, 2);
    assert_int_equal(profile.stacks[0].allocated_bytes, 3);
    assert_int_equal(profile.stacks[1].allocated_bytes, 4);
    assert_int_equal(profile.tree.nodes.items[profile.stacks[1].node].depth, 1);
}

// A short record: inner frames go, others come, and the innermost come again.
static void test_short_records(void **state) {
    (void)state;
    uint64_t whole[] = {PROGRAM + 0x10, PROGRAM + 0x20, PROGRAM + 0x30, PROGRAM + 0x40,
                        PROGRAM + 0x50};
    uint32_t first = making_stack(&making, 0, whole, 5);
    const uint32_t codes[] = {making_code(&making, PROGRAM + 0x31),
                              making_code(&making, PROGRAM + 0x41)};
    uint32_t exchanged = making_short(&making, 0, first, 3, codes, 1, 2);
    uint32_t deeper = making_short(&making, 0, exchanged, 1, codes, 2, 1);
    uint32_t shorter = making_short(&making, 0, deeper, 4, NULL, 0, 1);
    uint32_t none = making_short(&making, 0, first, 5, codes, 1, 0);
    whole[2] = PROGRAM + 0x31;
    making_book(&making, making_stack(&making, 1, whole, 5), 1, 1, 0, 0);
    const uint64_t longer[] = {whole[0], whole[1],       whole[2], whole[3],
                               whole[2], PROGRAM + 0x41, whole[4]};
    making_book(&making, making_stack(&making, 1, longer, 7), 1, 2, 0, 0);
    const uint64_t outer[] = {whole[0], whole[1], whole[2], whole[4]};
    making_book(&making, making_stack(&making, 1, outer, 4), 1, 4, 0, 0);
    making_book(&making, making_stack(&making, 1, &whole[2], 1), 1, 8, 0, 0);
    making_book(&making, exchanged, 1, 16, 0, 0);
    making_book(&making, deeper, 1, 32, 0, 0);
    making_book(&making, shorter, 1, 64, 0, 0);
    making_book(&making, none, 1, 128, 0, 0);
    build();
    assert_int_equal(recording.damage.bad_stacks, 0);
    assert_int_equal(profile.stack_count, 4);
    assert_int_equal(profile.stacks[0].allocated_bytes, 1 + 16);
    assert_int_equal(profile.stacks[1].allocated_bytes, 2 + 32);
    assert_int_equal(profile.stacks[2].allocated_bytes, 4 + 64);
    assert_int_equal(profile.stacks[3].allocated_bytes, 8 + 128);
}

// More frames go than there are, or come again than went; no other cell, or none with that number;
// a region, which short records do not have.
static void test_short_records_that_are_wrong(void **state) {
    (void)state;
    const uint64_t frames[] = {PROGRAM + 0x10, PROGRAM + 0x20};
    const uint32_t region = CAIRN_CODE_REGION | 1, none = UINT32_MAX;
    uint32_t first = making_stack(&making, 0, frames, 2);
    uint32_t cells[] = {making_short(&making, 0, first, 3, NULL, 0, 0),
                        making_short(&making, 0, first, 1, NULL, 0, 2),
                        making_short(&making, 0, first, 1, &region, 1, 0),
                        making_short(&making, 0, first, 1, NULL, 0, 0),
                        making_short(&making, 0, none, 1, NULL, 0, 0)};
    making.words[making.cells[cells[3]].record] &= ~CAIRN_SHORT_BACK_MOST;
    making.words[making.cells[cells[4]].record] |= CAIRN_SHORT_BACK_MOST;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        making_book(&making, cells[i], 1, 1, 0, 0);
    build();
    assert_int_equal(recording.damage.bad_stacks, 5);
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(profile.totals.allocations, 5);
}

static void test_escapes(void **state) {
    (void)state;
    // a later module where an earlier one had been: plain addresses are the first one's
    uint32_t late = making_module(&making, "/lib/late.so", library, 0x10000, library, 0x33);
    const uint32_t codes[] = {CAIRN_CODE_CUT | CAIRN_CUT_BAD_STACK,
                              CAIRN_CODE_MODULE | late,
                              0x40,
                              CAIRN_CODE_FULL,
                              0x89abcdef,
                              0x1234567,
                              making_code(&making, library + 8)};
    making_book(&making, making_cell(&making, 0, 0, 0, codes, 7, 4), 1, 10, 0, 0);
    build();
    const struct stack *stack = &profile.stacks[0];
    assert_int_equal(stack->cut, CAIRN_CUT_BAD_STACK);
    assert_int_equal(profile.incomplete[CAIRN_CUT_BAD_STACK], 1);
    assert_int_equal(profile_incomplete_count(&profile), 1);
    assert_int_equal(place_at(stack, 0)->module, 1);
    assert_int_equal(place_at(stack, 0)->address, 7);
    assert_int_equal(place_at(stack, 1)->module, MODULE_NONE);
    assert_int_equal(place_at(stack, 1)->address, 0x123456789abcdee);
    assert_int_equal(place_at(stack, 2)->module, late);
    assert_int_equal(place_at(stack, 2)->address, 0x3f);
}

// A library that was loaded twice, at two places, is one library.
static void test_reloaded_module(void **state) {
    (void)state;
    const uint64_t again = library + 0x1000000;
    making_module(&making, "/lib/library.so", again, 0x10000, again, 0x22);
    making_book(&making, stack_of(0, PROGRAM + 0x100, library + 0x200), 1, 1, 0, 0);
    making_book(&making, stack_of(0, PROGRAM + 0x100, again + 0x200), 1, 2, 0, 0);
    build();
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(profile.stacks[0].allocated_bytes, 3);
}

static void test_stack_ids_do_not_depend_on_addresses(void **state) {
    (void)state;
    making_book(&making, stack_of(0, library + 0x100, library + 0x200), 1, 1, 0, 0);
    build();
    uint64_t id = profile.stacks[0].id;
    teardown(NULL);
    making_start(&making);
    making_module(&making, "/other/path.so", library + 0x5000000, 0x10000, library + 0x5000000,
                  0x22);
    making_thread(&making, 1, "x");
    making_book(&making, stack_of(0, library + 0x5000100, library + 0x5000200), 9, 9, 0, 0);
    build();
    assert_int_equal(profile.stacks[0].id, id);
}

static void test_other_cell_and_high_halves(void **state) {
    (void)state;
    making.cells[CAIRN_CELL_OTHER].calls = 5;
    making.cells[CAIRN_CELL_OTHER].allocated_bytes = 50;
    making.rare[CAIRN_CELL_OTHER].calls_high = 2;
    making.rare[CAIRN_CELL_OTHER].frees_high = 1;
    build();
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(profile.stacks[0].node, TREE_ROOT);
    assert_int_equal(profile.stacks[0].allocations, 5 + ((uint64_t)2 << 32));
    assert_int_equal(profile.stacks[0].frees, (uint64_t)1 << 32);
}

static void test_circle_of_cells(void **state) {
    (void)state;
    uint32_t a = making_cell(&making, 0, 0, 1, NULL, 0, 0);
    uint32_t b = making_cell(&making, 0, a, 1, NULL, 0, 0);
    making.words[making.cells[a].record] = b;
    making_book(&making, a, 1, 1, 0, 0);
    making_book(&making, b, 1, 2, 0, 0);
    making_book(&making, stack_of(0, PROGRAM + 0x100, library + 0x200), 1, 4, 0, 0);
    build();
    assert_int_equal(recording.damage.bad_stacks, 2);
    assert_int_equal(profile.stack_count, 2);
    assert_int_equal(profile.stacks[0].allocated_bytes, 3);  // counted, but without a stack
    assert_int_equal(profile.stacks[1].allocated_bytes, 4);
    assert_false(profile_is_exact(&profile));
}

static void test_records_that_lead_outside(void **state) {
    (void)state;
    const uint32_t codes[] = {CAIRN_CODE_MODULE | 99, 0, CAIRN_CODE_PYTHON, 0xf6000000,
                              CAIRN_CODE_CUT | 16};
    making_book(&making, making_cell(&making, 0, 0, 0, &codes[0], 2, 1), 1, 1, 0, 0);
    making_book(&making, making_cell(&making, 0, 0, 0, &codes[2], 1, 1), 1, 1, 0, 0);
    making_book(&making, making_cell(&making, 0, 0, 0, &codes[3], 1, 1), 1, 1, 0, 0);
    making_book(&making, making_cell(&making, 0, 0, 5, NULL, 0, 0), 1, 1, 0, 0);
    making_book(&making, making_cell(&making, 0, 999999, 5, NULL, 0, 0), 1, 1, 0, 0);
    uint32_t far = making_cell(&making, 0, 0, 0, NULL, 0, 0);
    making.cells[far].record = UINT32_MAX;
    making_book(&making, far, 1, 1, 0, 0);
    making_book(&making, making_cell(&making, 0, 0, 0, NULL, 0, 30000), 1, 1, 0, 0);
    build();
    assert_int_equal(recording.damage.bad_stacks, 7);
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(profile.totals.allocations, 7);
}

// Blocks from before an attach: names instead of code, the same wherever the text lies.
// What a fork began with is in no call and no allocated byte; what is left of it is known apart.
static void test_inherited(void **state) {
    (void)state;
    uint32_t old = making_inherited(&making, "(inherited)", 10, 1000);
    uint32_t own = stack_of(0, PROGRAM + 0x100, library + 0x200);
    uint32_t freed = making_foreign(&making, 0, old);
    making.header.forked_from = 7;
    making_book(&making, own, 3, 300, 1, 100);
    making_peak(&making, 5);
    making_book(&making, freed, 0, 0, 4, 400);
    build();
    assert_int_equal(profile.totals.allocations, 3);
    assert_int_equal(profile.totals.allocated_bytes, 300);
    assert_int_equal(profile.totals.frees, 5);
    assert_int_equal(profile.exit_bytes, 800);
    const struct inherited *inherited = &profile.inherited;
    assert_int_equal(inherited->blocks, 10);
    assert_int_equal(inherited->bytes, 1000);
    assert_int_equal(inherited->peak_bytes, 1000);
    assert_int_equal(inherited->exit_blocks, 6);
    assert_int_equal(inherited->exit_bytes, 600);
    struct inherited alone = inherited_of(&recording);
    assert_int_equal(alone.blocks, 10);
    assert_int_equal(alone.exit_bytes, 600);
    assert_int_equal(profile.stack_count, 2);
    assert_int_equal(profile.stacks[0].allocations + profile.stacks[1].allocations, 3);
    assert_int_equal(profile.threads[2].allocations, 0);
    assert_int_equal(profile.threads[2].exit_bytes, 600);
    assert_int_equal(profile.threads[0].exit_bytes, 200);
}

static void test_names(void **state) {
    (void)state;
    uint32_t group = making_string(&making, "before"), kind = making_string(&making, "Widget");
    const uint32_t codes[] = {CAIRN_CODE_NAME, group, CAIRN_CODE_NAME, kind};
    const uint32_t outside[] = {CAIRN_CODE_NAME, 1u << 30};
    uint32_t cell = making_cell(&making, 0, 0, 0, codes, 4, 2);
    making_book(&making, cell, 5, 500, 0, 0);
    making_book(&making, making_foreign(&making, 0, cell), 0, 0, 2, 200);
    making_book(&making, making_cell(&making, 0, 0, 0, outside, 2, 1), 1, 1, 0, 0);
    build();
    assert_int_equal(recording.damage.bad_stacks, 1);
    assert_int_equal(profile.stack_count, 2);
    const struct stack *stack = &profile.stacks[0];
    const struct tree_node *nodes = profile.tree.nodes.items;
    uint32_t line;
    const struct code *inner = place_code(&profile.places, nodes[stack->node].place, &line);
    const struct code *outer =
        place_code(&profile.places, nodes[nodes[stack->node].parent].place, &line);
    assert_true(inner && inner->is_name && outer && outer->is_name);
    assert_string_equal(inner->function, "Widget");
    assert_string_equal(outer->function, "before");
    assert_int_equal(stack->exit_bytes, 300);
    assert_int_equal(stack->exit_blocks, 3);
    assert_int_equal(stack->cut, 0);
}

static void test_nothing(void **state) {
    (void)state;
    build();
    assert_int_equal(profile.stack_count, 0);
    assert_int_equal(profile.peak.bytes, 0);
    assert_true(profile_is_exact(&profile));
    size_t count;
    uint32_t *ranking = measure_rank(MEASURE_PEAK, &profile, &count);
    assert_int_equal(count, 0);
    free(ranking);
}

static void test_losses(void **state) {
    (void)state;
    making.header.lost[CAIRN_LOST_NO_MEMORY] = 3;
    build();
    assert_true(profile_is_exact(&profile));
    teardown(NULL);
    making.header.lost[CAIRN_LOST_NESTED] = 1;
    build();
    assert_false(profile_is_exact(&profile));
}

static void test_ranking(void **state) {
    (void)state;
    making_book(&making, stack_of(0, PROGRAM + 0x100, library + 0x200), 9, 10, 9, 10);
    making_book(&making, stack_of(0, PROGRAM + 0x100, library + 0x300), 1, 30, 0, 0);
    making_book(&making, stack_of(0, PROGRAM + 0x100, library + 0x400), 1, 20, 0, 0);
    build();
    size_t count;
    uint32_t *ranking = measure_rank(MEASURE_EXIT, &profile, &count);
    assert_int_equal(count, 2);
    assert_int_equal(ranking[0], 1);
    assert_int_equal(ranking[1], 2);
    free(ranking);
    ranking = measure_rank_all(MEASURE_CALLS, &profile, &count);
    assert_int_equal(count, 3);
    assert_int_equal(ranking[0], 0);
    free(ranking);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

// A damaged count of calls is any number: what of them is short-lived stays within one.
static void test_short_lived_of_too_many_calls(void **state) {
    struct profile damaged = {.totals.allocations = UINT64_MAX,
                              .totals.watched = {.blocks = 1, .short_lived = 1}};
    (void)state;
    assert_int_equal(measure_total(MEASURE_SHORT, &damaged).value, INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_short_lived_of_too_many_calls),
        TEST(test_one_stack),
        TEST(test_peak_is_at_the_end),
        TEST(test_peak_is_now),
        TEST(test_peak_in_the_middle),
        TEST(test_saved_value_of_an_older_peak),
        TEST(test_threads_merge_and_foreign_frees),
        TEST(test_error_of_threaded_peaks),
        TEST(test_peak_of_threads_below_what_is_live),
        TEST(test_slot_that_threads_handed_on),
        TEST(test_a_slot_of_which_nothing_is_left),
        TEST(test_a_slot_of_which_all_is_left),
        TEST(test_a_slot_in_which_one_allocated),
        TEST(test_records_that_build_on_others),
        TEST(test_short_records),
        TEST(test_short_records_that_are_wrong),
        TEST(test_escapes),
        TEST(test_reloaded_module),
        TEST(test_stack_ids_do_not_depend_on_addresses),
        TEST(test_other_cell_and_high_halves),
        TEST(test_circle_of_cells),
        TEST(test_records_that_lead_outside),
        TEST(test_inherited),
        TEST(test_names),
        TEST(test_nothing),
        TEST(test_losses),
        TEST(test_ranking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
