// SPDX-License-Identifier: Apache-2.0
#include "tool/render/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct measured counted(int64_t value) {
    return (struct measured){.value = value};
}

static void check(size_t first, size_t second, const int64_t *values, enum change_kind kind,
                  int64_t delta, bool is_noise) {
    struct diff diff;
    diff_start(&diff, first + second, first);
    struct change change = diff_change(&diff, values, NULL);
    assert_int_equal(change.kind, kind);
    assert_int_equal(change.delta, delta);
    assert_int_equal(change.is_noise, is_noise);
}
#define CHECK(first, second, kind, delta, is_noise, ...)                                           \
    check(first, second, (const int64_t[]){__VA_ARGS__}, kind, delta, is_noise)

static void test_changes(void **state) {
    (void)state;
    CHECK(1, 1, CHANGE_NONE, 0, false, 5, 5);
    CHECK(1, 1, CHANGE_GROWN, 1, false, 5, 6);
    CHECK(1, 1, CHANGE_SHRUNK, -2, false, 5, 3);
    CHECK(1, 1, CHANGE_NEW, 3, false, 0, 3);
    CHECK(1, 1, CHANGE_GONE, -3, false, 3, 0);
    // the sides touch: noise, whatever the medians say
    CHECK(3, 1, CHANGE_NONE, 1, true, 1, 3, 2, 3);
    CHECK(3, 2, CHANGE_NONE, 4, true, 1, 9, 2, 3, 9);
    CHECK(3, 3, CHANGE_GROWN, 8, false, 1, 3, 2, 11, 10, 9);
    CHECK(2, 2, CHANGE_NONE, 0, true, 1, 3, 3, 1);
    CHECK(2, 2, CHANGE_NONE, 0, false, 4, 4, 4, 4);
    CHECK(2, 1, CHANGE_NEW, 7, false, 0, 0, 7);
    // numbers of a damaged file wrap and do no harm
    CHECK(1, 1, CHANGE_SHRUNK, -1, false, INT64_MIN + 1, INT64_MIN);
}

// Three runs a side stand apart by chance in 2 of 20 orders; five in 2 of 252.
static void test_chance(void **state) {
    (void)state;
    static const int64_t three[] = {1, 3, 2, 11, 10, 9}, still[] = {4, 4, 4, 9, 9, 9};
    static const int64_t five[] = {1, 3, 2, 1, 2, 11, 10, 9, 8, 9};
    struct diff diff;
    diff_start(&diff, 6, 3);
    struct change change = diff_change(&diff, three, NULL);
    assert_int_equal(change.kind, CHANGE_GROWN);
    assert_true(change.chance > 0.0999 && change.chance < 0.1001);
    assert_true(diff_change(&diff, still, NULL).chance == 0);
    diff.doubtful_below = 9;
    change = diff_change(&diff, three, NULL);
    assert_int_equal(change.kind, CHANGE_NONE);
    assert_true(change.is_noise);
    assert_int_equal(diff_change(&diff, still, NULL).kind, CHANGE_GROWN);
    diff.doubtful_below = 8;
    assert_int_equal(diff_change(&diff, three, NULL).kind, CHANGE_GROWN);
    diff_start(&diff, 10, 5);
    diff.doubtful_below = 100;
    change = diff_change(&diff, five, NULL);
    assert_int_equal(change.kind, CHANGE_GROWN);
    assert_true(change.chance > 0.0079 && change.chance < 0.0080);
    diff_start(&diff, 4, 2);
    assert_true(diff_change(&diff, three, NULL).chance == 0);
}

static void test_rows(void **state) {
    (void)state;
    struct diff diff;
    size_t count, noise_count;
    diff_start(&diff, 3, 1);
    assert_true(diff_add(&diff, 0, "a", "a.c:1", counted(10)));
    assert_true(diff_add(&diff, 1, "a", "a.c:2", counted(5)));
    assert_true(diff_add(&diff, 1, "a", "a.c:2", counted(6)));
    assert_true(diff_add(&diff, 2, "a", "a.c:3", counted(9)));
    assert_true(diff_add(&diff, 1, "b", "", counted(7)));
    assert_true(diff_add(&diff, 2, "b", "", counted(7)));
    assert_true(diff_add(&diff, 0, "c", "", counted(100)));
    assert_int_equal(diff.rows.count, 3);
    assert_string_equal(diff_where(&diff, &diff.rows.items[0], 0), "a.c:3");
    uint32_t *rows = diff_rank(&diff, &count, &noise_count);
    assert_non_null(rows);
    assert_int_equal(count, 2);
    assert_int_equal(noise_count, 1);
    assert_string_equal(diff_name(&diff, &diff.rows.items[rows[0]], 0), "c");
    assert_string_equal(diff_name(&diff, &diff.rows.items[rows[1]], 0), "b");
    free(rows);
    diff_free(&diff);
}

// A difference of estimates counts where it is larger than its interval.
static void test_estimates(void **state) {
    (void)state;
    struct diff diff;
    diff_start(&diff, 2, 1);
    const struct measured estimate = measured_of_interval(100, 98, 9);
    assert_true(diff_add(&diff, 0, "a", "", estimate));
    assert_true(diff_add(&diff, 1, "a", "", counted(150)));
    assert_true(diff_add(&diff, 0, "b", "", estimate));
    assert_true(diff_add(&diff, 1, "b", "", counted(199)));
    assert_true(diff_add(&diff, 0, "c", "", estimate));
    assert_true(diff_add(&diff, 1, "c", "", estimate));
    struct change near = diff_row_change(&diff, 0), far = diff_row_change(&diff, 1);
    assert_int_equal(near.kind, CHANGE_NONE);
    assert_true(near.is_noise);
    assert_int_equal(near.interval, 98);
    assert_int_equal(far.kind, CHANGE_GROWN);
    assert_int_equal(far.interval, 98);
    assert_int_equal(diff_row_change(&diff, 2).interval, 138);  // 98 times the root of two
    // a sample of one in 100 bytes may miss 370
    assert_true(diff_set_sampled(&diff, 1, 100));
    assert_true(diff_add(&diff, 0, "d", "", counted(369)));
    assert_true(diff_add(&diff, 0, "e", "", counted(371)));
    assert_true(diff_row_change(&diff, 3).is_noise);
    assert_int_equal(diff_row_change(&diff, 4).kind, CHANGE_GONE);
    diff_free(&diff);
}

static void check_join(const char *before, const char *after, bool is_joined) {
    struct diff diff;
    diff_start(&diff, 2, 1);
    assert_true(diff_add(&diff, 0, before, "", counted(10)));
    assert_true(diff_add(&diff, 1, after, "", counted(12)));
    assert_true(diff_join_similar(&diff, NULL));
    assert_int_equal(diff.joined_count, is_joined);
    struct change change = diff_row_change(&diff, 1);
    assert_int_equal(change.kind, is_joined ? CHANGE_GROWN : CHANGE_NEW);
    diff_free(&diff);
}

static void test_similar(void **state) {
    (void)state;
    check_join("f\ng\nh\nmain", "g\nh\nmain", true);
    check_join("g\nh\nmain", "f\ng\nh\nmain", true);
    check_join("f\ng\nh\nmain", "f\nh\nmain", true);
    check_join("f\ng\nh\nmain", "f\nmain", false);               // half of it is gone
    check_join("f\ng\nh\nmain", "f\nx\nmain", false);            // another function
    check_join("f\ng\nmain", "g\nf\nmain", false);               // another order
    check_join("f\ng\nh\nmain", "g\nh\nstart", false);           // another start
    check_join("lib.so+0x12\nmain", "lib.so+0x34\nmain", true);  // another build of the library
    check_join("lib.so+0x12\nmain", "bil.so+0x12\nmain", false);
    check_join("f", "g", false);
    // as other profilers call it: what they do not say may be the same
    check_join("resize\nget\nmain", "std::vector<int>::resize\nTable::get\nmain", true);
    check_join("std::vector<>::f<int>\nmain", "std::vector<A<int>>::f<long>\nmain", true);
    check_join("f<int>\nmain", "f<long>\nmain", false);
    check_join("A::f\nmain", "B::f\nmain", false);
    check_join("0x4012\ng\nmain", "lib.so+0x34\ng\nmain", true);
    check_join("0x4012", "lib.so+0x34", false);
}

static void check_nearest(const char *before, const char *wrong, const char *right) {
    struct diff diff;
    diff_start(&diff, 2, 1);
    assert_true(diff_add(&diff, 1, wrong, "", counted(10)));
    assert_true(diff_add(&diff, 1, right, "", counted(10)));
    assert_true(diff_add(&diff, 0, before, "", counted(10)));
    assert_true(diff_join_similar(&diff, NULL));
    assert_int_equal(diff_joined_row(&diff, 2), 1);
    assert_int_equal(diff_joined_row(&diff, 1), 1);
    assert_int_equal(diff_row_change(&diff, 0).kind, CHANGE_NEW);
    diff_free(&diff);
}

static void test_nearest(void **state) {
    (void)state;
    check_nearest("f\ng\nmain", "A::f\nB::g\nmain", "f\nB::g\nmain");
    check_nearest("f\ng\nh\nmain", "g\nh\nmain", "A::f\ng\nh\nmain");
    check_nearest("0x4012", "lib.so+0x34\nmain", "lib.so+0x34");  // one frame, of the same amount
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes), cmocka_unit_test(test_chance),
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_similar), cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
