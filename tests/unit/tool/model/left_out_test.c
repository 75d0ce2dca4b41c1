// SPDX-License-Identifier: Apache-2.0
#include "tool/model/left_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "format/hello.h"

static void test_same_names_share_an_entry(void **state) {
    (void)state;
    struct cairn_left_out list = {0};
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, "app", 1);
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, "app", 1);
    left_out_add(&list, CAIRN_UNRECORDED_ENVIRONMENT, "app", 1);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.programs[0].count, 2);
    assert_int_equal(list.programs[1].reason, CAIRN_UNRECORDED_ENVIRONMENT);
    assert_int_equal(list.programs[1].count, 1);
    assert_int_equal(left_out_unnamed(&list), 0);
}

static void test_withdrawn_ones_leave_nothing(void **state) {
    (void)state;
    struct cairn_left_out list = {0};
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, "app", 1);
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, "app", -1);
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, "app", -1);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.programs[0].count, 0);
    left_out_add(&list, CAIRN_UNRECORDED_MACHINE, "other", 1);
    assert_string_equal(list.programs[0].name, "other");
}

static void test_long_names_are_cut_and_found_again(void **state) {
    (void)state;
    struct cairn_left_out list = {0};
    char name[2 * CAIRN_LEFT_OUT_NAME];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, name, 1);
    left_out_add(&list, CAIRN_UNRECORDED_STATIC, name, 1);
    assert_int_equal(strlen(list.programs[0].name), CAIRN_LEFT_OUT_NAME - 1);
    assert_int_equal(list.programs[0].count, 2);
}

static void test_more_names_than_entries_are_counted(void **state) {
    (void)state;
    enum { NAMES = CAIRN_LEFT_OUT_PROGRAMS + 3 };
    struct recording recording = {.header.state = CAIRN_STATE_ENDED};
    struct cairn_left_out sum = {0};
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "app%d", i);
        left_out_add(&recording.header.left_out, CAIRN_UNRECORDED_STATIC, name, 1);
    }
    left_out_add_recording(&sum, &recording);
    left_out_add_recording(&sum, &recording);
    assert_int_equal(sum.count, 2 * NAMES);
    assert_int_equal(left_out_unnamed(&sum), 2 * (NAMES - CAIRN_LEFT_OUT_PROGRAMS));
}

static void test_damaged_lists_are_bounded(void **state) {
    (void)state;
    struct recording recording;
    struct cairn_left_out sum = {0};
    memset(&recording, 'x', sizeof recording);
    recording.header.left_out.count = 0;
    left_out_add_recording(&sum, &recording);
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++) {
        assert_int_equal(sum.programs[i].name[CAIRN_LEFT_OUT_NAME - 1], 0);
        assert_string_equal(left_out_key(sum.programs[i].reason), "unknown");
        assert_non_null(left_out_clause(sum.programs[i].reason));
        assert_non_null(left_out_words(sum.programs[i].reason));
    }
}

static void test_every_reason_has_its_words(void **state) {
    (void)state;
    for (uint32_t reason = 1; reason < CAIRN_UNRECORDED_KINDS; reason++)
        assert_string_not_equal(left_out_key(reason), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_names_share_an_entry),
        cmocka_unit_test(test_withdrawn_ones_leave_nothing),
        cmocka_unit_test(test_long_names_are_cut_and_found_again),
        cmocka_unit_test(test_more_names_than_entries_are_counted),
        cmocka_unit_test(test_damaged_lists_are_bounded),
        cmocka_unit_test(test_every_reason_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
