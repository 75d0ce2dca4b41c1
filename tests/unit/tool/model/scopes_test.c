// SPDX-License-Identifier: Apache-2.0
// Regions and pools of made recordings: paths, sums with and without inner regions, what filters
// leave, and entries that contradict themselves.
#include "tool/model/scopes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/model/narrow.h"

static struct making making;
static struct recording recording;
static struct profile profile;
static struct scopes scopes;
static uint8_t *bytes;
static uint32_t load, parse, nodes;

// One stack in no region, in load, and in load/parse; frees of the latter by another thread.
static void make(void) {
    const uint64_t stack[] = {0x401000, 0x402000};
    making_start(&making);
    uint32_t thread = making_thread(&making, 4242, "main"),
             other = making_thread(&making, 4243, "x");
    load = making_scope(&making, CAIRN_SCOPE_REGION, 0, "load", 1);
    parse = making_scope(&making, CAIRN_SCOPE_REGION, load, "parse", 7);
    nodes = making_scope(&making, CAIRN_SCOPE_POOL, 0, "nodes", 2);
    uint32_t outside = making_stack(&making, thread, stack, 2);
    const uint32_t in_load[] = {CAIRN_CODE_REGION | load}, in_parse[] = {CAIRN_CODE_REGION | parse};
    uint32_t first = making_cell(&making, thread, outside, 2, in_load, 1, 1);
    uint32_t second = making_cell(&making, thread, first, 2, in_parse, 1, 1);
    making_book(&making, outside, 1, 1000, 0, 0);
    making_book(&making, first, 2, 200, 1, 100);
    making_book(&making, second, 3, 30, 0, 0);
    making_book(&making, making_foreign(&making, other, second), 0, 0, 1, 10);
}

static void open_all(void) {
    struct error error;
    size_t size;
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, &error));
    assert_true(profile_build(&recording, &profile, &error));
    assert_true(scopes_read(&scopes, &recording));
}

static void close_all(void) {
    scopes_free(&scopes);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
}

static void test_sums(void **state) {
    struct stack *values;
    (void)state;
    make();
    open_all();
    assert_int_equal(recording.damage.bad_stacks, 0);
    assert_string_equal(scopes.list[parse].path, "load/parse");
    assert_string_equal(scopes.list[nodes].path, "nodes");
    assert_int_equal(profile.stack_count, 1);  // the stack is one, in whatever region
    assert_int_equal(profile.stacks[0].allocated_bytes, 1230);
    values = scopes_sum(&scopes, &profile, true);
    assert_non_null(values);
    assert_int_equal(values[load].allocations, 5);
    assert_int_equal(values[load].exit_bytes, 120);
    assert_int_equal(values[parse].exit_bytes, 20);
    free(values);
    values = scopes_sum(&scopes, &profile, false);
    assert_non_null(values);
    assert_int_equal(values[load].exit_bytes, 100);
    free(values);
    close_all();
}

static void test_filter(void **state) {
    struct stack *values;
    bool are_kept[MAKING_SCOPES] = {false};
    (void)state;
    make();
    open_all();
    are_kept[parse] = true;
    profile_keep_regions(&profile, are_kept, scopes.count);
    assert_int_equal(profile.stacks[0].allocated_bytes, 30);
    assert_int_equal(profile.stacks[0].exit_bytes, 20);
    values = scopes_sum(&scopes, &profile, true);
    assert_non_null(values);
    assert_int_equal(values[load].allocated_bytes, 30);
    free(values);
    close_all();
}

// A parent that comes later, a kind that nobody knows, a name outside of STRINGS, a region that
// does not exist, and one in the middle of a stack.
static void test_damage(void **state) {
    struct stack *values;
    (void)state;
    make();
    making.scopes[load].parent = parse;
    making.scopes[parse].name = 1u << 30;
    making.scopes[nodes].kind = 77;
    const uint32_t wrong[] = {CAIRN_CODE_REGION | load, making_code(&making, 0x403000),
                              CAIRN_CODE_REGION | 0xffffff};
    making_book(&making, making_cell(&making, 0, 0, 0, wrong + 1, 2, 2), 1, 8, 0, 0);
    making_book(&making, making_cell(&making, 0, 0, 0, wrong, 2, 2), 1, 8, 0, 0);
    open_all();
    assert_int_equal(scopes.list[load].kind, 0);
    assert_int_equal(scopes.list[nodes].kind, 0);
    assert_string_equal(scopes.list[parse].path, "");
    assert_int_equal(recording.damage.bad_stacks, 1);
    values = scopes_sum(&scopes, &profile, true);
    assert_non_null(values);
    assert_int_equal(values[parse].allocated_bytes, 30);
    free(values);
    close_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
