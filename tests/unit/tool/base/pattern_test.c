// SPDX-License-Identifier: Apache-2.0
#include "tool/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *expression, const char *text) {
    struct pattern *pattern;
    assert_true(pattern_compile(expression, &pattern, NULL));
    bool is_match = pattern_matches(pattern, text);
    pattern_free(pattern);
    return is_match;
}

static void test_matches(void **state) {
    (void)state;
    assert_true(matches("tree", "my_tree_node"));
    assert_false(matches("^tree", "my_tree_node"));
    assert_true(matches("(?i)TREE$", "my_Tree"));
    assert_true(matches("std::map<.*>::", "std::map<int, int>::insert"));
    assert_false(matches("a", ""));
    assert_true(matches("x", "\xff\xfex"));  // names are bytes, not always UTF-8
}

static void test_bad_expressions(void **state) {
    (void)state;
    struct pattern *pattern;
    struct error error;
    assert_false(pattern_compile("ab(c", &pattern, &error));
    assert_null(pattern);
    assert_non_null(strstr(error.text, "parenthesis"));
    assert_non_null(strstr(error.text, "character 4"));
    assert_false(pattern_compile("a[z", &pattern, &error));
    assert_false(pattern_compile("*", &pattern, &error));
    assert_non_null(strstr(error.text, "character 0"));
}

// An expression that would try more ways than there are seconds ends as no match.
static void test_no_endless_search(void **state) {
    (void)state;
    char text[64];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    assert_false(matches("^(a+)+$b", text));
    assert_false(matches("^(a|aa)+\\1!$", text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_bad_expressions),
        cmocka_unit_test(test_no_endless_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
