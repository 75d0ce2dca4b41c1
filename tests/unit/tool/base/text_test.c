// SPDX-License-Identifier: Apache-2.0
#include "tool/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_escape(const char *text, const char *expected) {
    char out[64];
    text_escape(out, sizeof out, text);
    assert_string_equal(out, expected);
}

static void test_escape(void **state) {
    (void)state;
    check_escape("plain text", "plain text");
    check_escape("gr\xc3\xbc\xc3\x9f \xe2\x86\x90", "gr\xc3\xbc\xc3\x9f \xe2\x86\x90");
    check_escape("a\033[31mb\n\r\t\x7f", "a\\x1b[31mb\\x0a\\x0d\\x09\\x7f");
    check_escape("\xff\xfe", "\\xff\\xfe");
    check_escape("\xc3", "\\xc3");                    // cut character
    check_escape("\xc0\xaf", "\\xc0\\xaf");           // overlong form
    check_escape("\xed\xa0\x80", "\\xed\\xa0\\x80");  // surrogate
    check_escape("\xc2\x9b", "\\xc2\\x9b");           // C1 control
    check_escape("\xe2\x80\xae", "\\xe2\\x80\\xae");  // writes from right to left
}

static void test_escape_cuts_at_characters(void **state) {
    (void)state;
    char out[6];
    text_escape(out, sizeof out, "abcd\xc3\xbc");
    assert_string_equal(out, "abcd");
    text_escape(out, sizeof out, "ab\001c");
    assert_string_equal(out, "ab");
    text_escape(out, 1, "abc");
    assert_string_equal(out, "");
}

static void test_columns(void **state) {
    (void)state;
    assert_int_equal(text_columns(""), 0);
    assert_int_equal(text_columns("gr\xc3\xbc\xc3\x9f"), 4);
    assert_int_equal(text_columns("\xe6\xbc\xa2\xe5\xad\x97"), 4);  // two wide characters
    assert_int_equal(text_columns("e\xcc\x81"), 1);                 // combining accent
}

static void check_cut(const char *text, size_t columns, const char *expected) {
    char copy[64];
    strcpy(copy, text);
    text_cut(copy, columns);
    assert_string_equal(copy, expected);
    assert_true(text_columns(copy) <= columns || columns == 0);
}

static void test_cut(void **state) {
    (void)state;
    check_cut("abcdef", 6, "abcdef");
    check_cut("abcdefghij", 6, "abcde\xe2\x80\xa6");
    check_cut("abcdef", 5, "abc\xe2\x80\xa6");  // no room in place for four and an ellipsis
    check_cut("abcdefghij", 1, "\xe2\x80\xa6");
    check_cut("gr\xc3\xbc\xc3\x9f dich", 5, "gr\xc3\xbc\xc3\x9f\xe2\x80\xa6");
}

static void test_base_name(void **state) {
    (void)state;
    assert_string_equal(text_base_name("a/b.c"), "b.c");
    assert_string_equal(text_base_name("b.c"), "b.c");
    assert_string_equal(text_base_name("a/"), "a/");
    assert_string_equal(text_base_name(""), "");
}

// Any bytes: escaping twice changes nothing more than backslashes would, and nothing is overrun.
static void test_random_bytes(void **state) {
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        char text[32], once[160], twice[160];
        size_t size = (size_t)rand_r(&seed) % sizeof text;
        for (size_t i = 0; i < size; i++) text[i] = (char)(rand_r(&seed) % 255 + 1);
        text[size] = 0;
        text_escape(once, sizeof once, text);
        text_escape(twice, sizeof twice, once);
        assert_string_equal(once, twice);
        text_cut(once, (size_t)rand_r(&seed) % 8 + 1);
        text_escape(twice, sizeof twice, once);
        assert_string_equal(once, twice);
    }
}

static void test_quote(void **state) {
    (void)state;
    const struct {
        const char *text, *quoted;
    } cases[] = {{"a/b-1.cairn", "a/b-1.cairn"},
                 {"\xc3\xbc.cairn", "\xc3\xbc.cairn"},
                 {"a b", "'a b'"},
                 {"it's", "'it'\\''s'"},
                 {"$HOME", "'$HOME'"},
                 {"", "''"},
                 {"-o x", "'./-o x'"},
                 {"-o", "./-o"}};
    char out[32], small[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_quote(out, sizeof out, cases[i].text);
        assert_string_equal(out, cases[i].quoted);
    }
    text_quote_word(out, sizeof out, "--gtest_filter=A.*");
    assert_string_equal(out, "'--gtest_filter=A.*'");
    text_quote(small, sizeof small, "abcdef");
    assert_string_equal(small, "abc");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),    cmocka_unit_test(test_escape_cuts_at_characters),
        cmocka_unit_test(test_columns),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_base_name), cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
