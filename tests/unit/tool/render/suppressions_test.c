// SPDX-License-Identifier: Apache-2.0
#include "tool/render/suppressions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define YES(pattern, text) assert_true(suppression_matches(pattern, text))
#define NO(pattern, text) assert_false(suppression_matches(pattern, text))

// The cases of LeakSanitizer's own rules.
static void test_patterns(void **state) {
    (void)state;
    YES("main", "main");
    YES("main", "my_main_loop");
    NO("main", "mai");
    YES("^main", "mainloop");
    NO("^main", "my_main");
    YES("main$", "my_main");
    NO("main$", "mainloop");
    YES("^main$", "main");
    NO("^main$", "mainmain");
    YES("a*b", "xaxxbx");
    NO("a*b", "xbxa");
    YES("^a*b$", "ab");
    YES("^a*b$", "abb");
    NO("^a*b$", "abc");
    NO("^a*b$", "xab");
    YES("a*b*c", "a.b.c");
    NO("a*b*c", "a.c.b");
    YES("*", "");
    YES("", "anything");
    YES("^$", "");
    NO("^$", "x");
    YES("^*x", "aax");
    YES("x*$", "ax");
    YES("std::*::insert", "std::map<int, int>::insert");
}

static bool read_text(const char *text, struct suppressions *suppressions, struct error *error) {
    char path[] = "/tmp/suppressions.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    suppressions_start(suppressions);
    bool is_ok = suppressions_add_file(suppressions, path, error);
    unlink(path);
    return is_ok;
}

static void test_files(void **state) {
    (void)state;
    struct suppressions suppressions;
    struct error error;
    assert_true(read_text("# a comment\n\n  leak:one \r\nleak:t*o\n", &suppressions, &error));
    assert_int_equal(suppressions.rules.count, 2);
    assert_string_equal(suppressions.rules.items[0].function, "one");
    assert_string_equal(suppressions.rules.items[1].function, "t*o");
    suppressions_free(&suppressions);
    assert_false(read_text("leak:fine\nrace:other\n", &suppressions, &error));
    assert_non_null(strstr(error.text, ":2: "));
    suppressions_free(&suppressions);
    assert_false(read_text("leak:", &suppressions, &error));
    assert_non_null(strstr(error.text, ":1: "));
    suppressions_free(&suppressions);
    assert_true(read_text("", &suppressions, &error));
    assert_true(suppressions_add_common(&suppressions, &error));
    assert_true(suppressions.rules.count > 10);
    suppressions_free(&suppressions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
