// SPDX-License-Identifier: Apache-2.0
#include "tool/base/toml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct toml toml;
static struct error error;

static bool read_text(const char *text) {
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(file);
    bool is_ok = toml_read(file, "x.toml", &toml, &error);
    fclose(file);
    return is_ok;
}

static void check_entry(size_t index, const char *table, const char *key, const char *text,
                        unsigned line) {
    assert_true(index < toml.entries.count);
    const struct toml_entry *entry = &toml.entries.items[index];
    assert_string_equal(entry->table, table);
    assert_string_equal(entry->key, key);
    assert_string_equal(entry->text, text);
    assert_int_equal(entry->line, line);
}

static void test_values(void **state) {
    (void)state;
    assert_true(read_text("# comment\n"
                          "\n"
                          "first = 1_000_000 # behind\r\n"
                          "[\"a b\"]\n"
                          "  max-peak=\"200 MiB\"\n"
                          "\"odd \\\"key\\\"\" = 'C:\\n'\n"
                          "[ two ]\n"
                          "f = -1.5e+3\n"
                          "last = 0"));
    assert_int_equal(toml.entries.count, 7);
    check_entry(0, "", "first", "1000000", 3);
    assert_true(toml.entries.items[0].number == 1e6);
    check_entry(1, "a b", "", "", 4);
    check_entry(2, "a b", "max-peak", "200 MiB", 5);
    assert_true(toml.entries.items[2].is_text);
    check_entry(3, "a b", "odd \"key\"", "C:\\n", 6);
    check_entry(4, "two", "", "", 7);
    check_entry(5, "two", "f", "-1.5e+3", 8);
    assert_true(toml.entries.items[5].number == -1500);
    check_entry(6, "two", "last", "0", 9);
    toml_free(&toml);
    assert_true(read_text("\n"));
    toml_free(&toml);
}

static void refuse(const char *text, const char *where, const char *why) {
    assert_false(read_text(text));
    assert_memory_equal(error.text, where, strlen(where));
    assert_non_null(strstr(error.text, why));
    toml_free(&toml);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("a = 1\nb\n", "x.toml:2: ", "\"=\"");
    refuse("a = \n", "x.toml:1: ", "text in quotes or a number");
    refuse("a = true\n", "x.toml:1: ", "text in quotes or a number");
    refuse("a = [1]\n", "x.toml:1: ", "text in quotes or a number");
    refuse("a = \"x\n", "x.toml:1: ", "no end");
    refuse("a = \"\\q\"\n", "x.toml:1: ", "escape");
    refuse("a = \"\"\"x\"\"\"\n", "x.toml:1: ", "several lines");
    refuse("a = 1 2\n", "x.toml:1: ", "behind the end");
    refuse("a = 012\n", "x.toml:1: ", "start with 0");
    refuse("a = 1__0\n", "x.toml:1: ", "behind the end");
    refuse("a = 1.\n", "x.toml:1: ", "number");
    refuse("a.b = 1\n", "x.toml:1: ", "dots");
    refuse("[[a]]\n", "x.toml:1: ", "arrays of tables");
    refuse("[a\n", "x.toml:1: ", "\"]\"");
    refuse("[a.b]\n", "x.toml:1: ", "dots");
    refuse("[a]\n[b]\n[a]\n", "x.toml:3: ", "twice");
    refuse("a = 1\na = 2\n", "x.toml:2: ", "twice");
    refuse("\"\" = 1\n", "x.toml:1: ", "empty");
    refuse("a = \"\x01\"\n", "x.toml:1: ", "control");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
