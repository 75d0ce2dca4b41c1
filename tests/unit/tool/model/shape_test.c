// SPDX-License-Identifier: Apache-2.0
#include "tool/model/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

enum { PROGRAM = 0x400000 };
static struct making making;
static struct recording recording;
static struct profile profile;
static struct shape shape;
static uint8_t *bytes;

static void start(void) {
    making_start(&making);
    making.has_use = true;
    making_module(&making, "/usr/bin/example", PROGRAM, 0x10000, 0, 0x11);
    making_thread(&making, 4242, "example");
    making_thread(&making, 4243, "worker");
}

static void open_made(void) {
    size_t size;
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    assert_true(shape_build(&shape, &profile, NULL));
}

static void close_made(void) {
    shape_free(&shape);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
}

static uint32_t stack_at(uint32_t thread, uint64_t address) {
    return making_stack(&making, thread, &address, 1);
}

static uint32_t number_of(uint32_t cell) {
    return profile.stack_of_cell[cell] - 1;
}

// The same stack in two threads: one has one size, the other several.
static void test_sizes_of_two_cells(void **state) {
    (void)state;
    struct shape_sizes sizes;
    start();
    uint32_t one = stack_at(0, PROGRAM + 0x10), two = stack_at(1, PROGRAM + 0x10);
    making_book(&making, one, 10, 320, 0, 0);
    making_book(&making, two, 100, 3200, 0, 0);
    struct cairn_sizes *others = making_sizes(&making, two);
    others->unknown_calls = 20;
    others->sizes[0] = 100;
    others->counts[0] = 30;
    others->buckets[12] = 5;
    open_made();
    shape_sizes(&shape, number_of(one), &sizes);
    assert_int_equal(sizes.unknown, 20);
    assert_int_equal(sizes.count, 2);
    assert_int_equal(sizes.list[0].size, 32);
    assert_int_equal(sizes.list[0].count, 10 + 45);
    assert_true(sizes.list[0].is_at_least);
    assert_int_equal(sizes.list[1].size, 100);
    assert_int_equal(sizes.list[1].count, 30);
    assert_int_equal(sizes.buckets[6], 55);
    assert_int_equal(sizes.buckets[7], 30);
    assert_int_equal(sizes.buckets[12], 5);
    close_made();
}

static void test_sizes_that_were_not_counted(void **state) {
    (void)state;
    struct shape_sizes sizes;
    start();
    uint32_t few = stack_at(0, PROGRAM + 0x10), lying = stack_at(0, PROGRAM + 0x20);
    making_book(&making, few, 3, 99, 0, 0);
    making.cells[few].size = CAIRN_SIZE_VARIES;
    making_book(&making, lying, 4, 16, 0, 0);
    making.rare[lying].sizes = 77;
    open_made();
    shape_sizes(&shape, number_of(few), &sizes);
    assert_int_equal(sizes.unknown, 3);
    assert_int_equal(sizes.count, 0);
    shape_sizes(&shape, number_of(lying), &sizes);
    assert_int_equal(sizes.unknown, 4);
    close_made();
}

static void test_reallocs_and_ages(void **state) {
    (void)state;
    struct shape_reallocs reallocs;
    struct shape_ages ages;
    start();
    uint32_t one = stack_at(0, PROGRAM + 0x10), two = stack_at(1, PROGRAM + 0x10);
    uint32_t plain = stack_at(0, PROGRAM + 0x20);
    making_book(&making, one, 5, 500, 0, 0);
    making_book(&making, two, 5, 500, 0, 0);
    making_book(&making, plain, 5, 500, 0, 0);
    *making_reallocs(&making, one) = (struct cairn_reallocs){
        .cell = one, .calls = 4, .in_place = 1, .grown = 3, .copied_bytes = 700};
    *making_reallocs(&making, two) =
        (struct cairn_reallocs){.cell = two, .calls = 1, .grown = 1, .copied_bytes = 50};
    making_ages(&making, two)->calls[0] = 6;
    making_ages(&making, one)->ms[3] = 2;
    open_made();
    shape_reallocs(&shape, number_of(one), &reallocs);
    assert_int_equal(reallocs.calls, 5);
    assert_int_equal(reallocs.in_place, 1);
    assert_int_equal(reallocs.grown, 4);
    assert_int_equal(reallocs.copied_bytes, 750);
    assert_true(shape_ages(&shape, number_of(one), &ages));
    assert_int_equal(ages.calls[0], 6);
    assert_int_equal(ages.ms[3], 2);
    shape_reallocs(&shape, number_of(plain), &reallocs);
    assert_int_equal(reallocs.calls, 0);
    assert_false(shape_ages(&shape, number_of(plain), &ages));
    close_made();
}

static void test_who_freed_whose(void **state) {
    (void)state;
    size_t count;
    start();
    uint32_t cell = stack_at(0, PROGRAM + 0x10), other = stack_at(0, PROGRAM + 0x20);
    uint32_t foreign = making_foreign(&making, 1, cell);
    uint32_t foreign_other = making_foreign(&making, 1, other);
    making_book(&making, cell, 10, 1000, 2, 200);
    making_book(&making, other, 10, 100, 0, 0);
    making_book(&making, foreign, 0, 0, 3, 300);
    making_book(&making, foreign_other, 0, 0, 4, 40);
    open_made();
    struct shape_freed *pairs = shape_freed_by(&profile, &count);
    assert_int_equal(count, 2);
    assert_int_equal(pairs[0].owner, 0);
    assert_int_equal(pairs[0].freer, 0);
    assert_int_equal(pairs[0].bytes, 200);
    assert_int_equal(pairs[1].owner, 0);
    assert_int_equal(pairs[1].freer, 1);
    assert_int_equal(pairs[1].frees, 7);
    assert_int_equal(pairs[1].bytes, 340);
    free(pairs);
    close_made();
}

// Two threads free at the same stack what one stack allocated.
static void test_free_stacks(void **state) {
    (void)state;
    size_t count, own_count;
    start();
    uint32_t cell = stack_at(0, PROGRAM + 0x10);
    uint32_t freer = stack_at(0, PROGRAM + 0x40), freer_too = stack_at(1, PROGRAM + 0x40);
    uint32_t own = making_freed_at(&making, 0, cell, freer);
    uint32_t foreign = making_freed_at(&making, 1, cell, freer_too);
    uint32_t bad = making_freed_at(&making, 1, cell, 12345678);
    making_book(&making, cell, 10, 1000, 0, 0);
    making_book(&making, own, 0, 0, 3, 300);
    making_book(&making, foreign, 0, 0, 2, 200);
    making_book(&making, bad, 0, 0, 1, 100);
    open_made();
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(profile.stacks[0].exit_bytes, 400);
    struct shape_free_stack *list = shape_free_stacks(&profile, &count);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].allocating, 0);
    assert_int_equal(list[0].frees, 5);
    assert_int_equal(list[0].bytes, 500);
    assert_int_equal(profile.tree.nodes.items[list[0].node].depth, 1);
    assert_ptr_equal(shape_free_stacks_of(list, count, 0, &own_count), list);
    assert_int_equal(own_count, 1);
    shape_free_stacks_of(list, count, 1, &own_count);
    assert_int_equal(own_count, 0);
    free(list);
    close_made();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_two_cells),
        cmocka_unit_test(test_sizes_that_were_not_counted),
        cmocka_unit_test(test_reallocs_and_ages),
        cmocka_unit_test(test_who_freed_whose),
        cmocka_unit_test(test_free_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
