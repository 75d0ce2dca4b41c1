// SPDX-License-Identifier: Apache-2.0
// Mistyped words lead to the word that is meant, and words that are not near any lead nowhere.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tool/base/near.h"

static const char *const names[] = {"run",    "report", "replay", "top",       "sql",   "leaks",
                                    "export", "view",   "output", "functions", "files", NULL};

static const char *nearest(const char *word) {
    struct near near;
    near_start(&near, word, strlen(word));
    for (const char *const *name = names; *name; name++) near_try(&near, *name);
    return near.best;
}

static void test_mistyped(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"runn", "run"},           {"rnu", "run"},        {"repotr", "report"},
        {"reprot", "report"},      {"ouput", "output"},   {"vew", "view"},
        {"fuctions", "functions"}, {"func", "functions"}, {"leak", "leaks"},
        {"eksport", "export"},     {"tops", "top"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *best = nearest(cases[i][0]);
        if (!best) fail_msg("%s leads nowhere", cases[i][0]);
        assert_string_equal(best, cases[i][1]);
    }
}

static void test_far(void **state) {
    (void)state;
    static const char *const far[] = {
        "",      "x",         "ls",  "python3",
        "./app", "heaptrack", "123", "a-very-long-word-that-is-longer-than-any-name-there-is"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) assert_null(nearest(far[i]));
}

// The word ends where its length says, as that of "--ouput=x" does.
static void test_length(void **state) {
    (void)state;
    struct near near;
    near_start(&near, "vew=12345", 3);
    near_try(&near, "view");
    assert_string_equal(near.best, "view");
}

// The nearest is kept, and of equally near ones the first.
static void test_order(void **state) {
    (void)state;
    struct near near;
    char text[8];
    near_start(&near, "cat", 3);
    near_try(&near, "dog");
    near_ask(&near, text, sizeof text);
    assert_string_equal(text, "");
    near_try(&near, "bat");
    near_try(&near, "hat");
    assert_string_equal(near.best, "bat");
    near_try(&near, "cat");
    assert_string_equal(near.best, "cat");
    near_ask(&near, text, sizeof text);
    assert_string_equal(text, " (did y");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistyped),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
