// SPDX-License-Identifier: Apache-2.0
#include "tool/base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_sizes(void **state) {
    (void)state;
    const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {9830, "9.6 KiB"},
        {120832, "118 KiB"},
        {102348, "99.9 KiB"},
        {102400, "100 KiB"},
        {1280, "1.2 KiB"},  // what lies in the middle is rounded to even, on the page too
        {1792, "1.8 KiB"},
        {327680000, "312 MiB"},
        {328728576, "314 MiB"},
        {1048064, "1.0 MiB"},
        {1048063, "1023 KiB"},
        {21705523, "20.7 MiB"},
        {137363456, "131 MiB"},
        {(int64_t)3 << 40, "3.0 TiB"},
        {INT64_MAX, "8.0 EiB"},
        {-2048, "-2.0 KiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(units_size(cases[i].bytes).text, cases[i].text);
    assert_string_equal(units_size_as(9830, true).text, "9830");
    assert_string_equal(units_size_as(9830, false).text, "9.6 KiB");
}

static void test_counts(void **state) {
    (void)state;
    assert_string_equal(units_count(0).text, "0");
    assert_string_equal(units_count(999).text, "999");
    assert_string_equal(units_count(1000).text, "1,000");
    assert_string_equal(units_count(1626574).text, "1,626,574");
    assert_string_equal(units_count(-100).text, "-100");
    assert_string_equal(units_count(-123456).text, "-123,456");
    assert_string_equal(units_count(INT64_MIN).text, "-9,223,372,036,854,775,808");
}

static void test_counts_with_nouns(void **state) {
    (void)state;
    assert_string_equal(units_counted(0, "block", "blocks").text, "0 blocks");
    assert_string_equal(units_counted(1, "block", "blocks").text, "1 block");
    assert_string_equal(units_counted(1024, "process", "processes").text, "1,024 processes");
    assert_string_equal(units_noun(-1, "call", "calls"), "calls");
}

static void test_rates(void **state) {
    (void)state;
    const uint64_t second = 1000000000;
    assert_string_equal(units_rate(1626574, 520000000).text, "3.1 M/s");
    assert_string_equal(units_rate(12, second).text, "12 /s");
    assert_string_equal(units_rate(999499, second).text, "999 k/s");
    assert_string_equal(units_rate(999500, second).text, "1.0 M/s");
    assert_string_equal(units_rate(5, 0).text, "");
}

static void test_durations(void **state) {
    (void)state;
    assert_string_equal(units_duration(0).text, "0 us");
    assert_string_equal(units_duration(12345).text, "12 us");
    assert_string_equal(units_duration(3200000).text, "3.2 ms");
    assert_string_equal(units_duration(520000000).text, "0.52 s");
    assert_string_equal(units_duration(12340000000).text, "12.3 s");
    assert_string_equal(units_duration(125000000000).text, "2 min 05 s");
    assert_string_equal(units_duration(3600000000000 * 26 + 60000000000).text, "26 h 01 min");
}

static void test_percentages(void **state) {
    (void)state;
    assert_string_equal(units_percent(62, 100).text, "62 %");
    assert_string_equal(units_percent(34, 1000).text, "3.4 %");
    assert_string_equal(units_percent(0, 1000).text, "0 %");
    assert_string_equal(units_percent(5, 0).text, "-");
}

static void test_parsing(void **state) {
    (void)state;
    const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"10K", 10240},
        {"10k", 10240},
        {"10KB", 10240},
        {"1.5MiB", 1572864},
        {"1.5 MiB", 1572864},
        {"2g", 2147483648},
        {"12b", 12},
        {"1T", (uint64_t)1 << 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bytes = 1;
        assert_true(units_size_parse(cases[i].text, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
    const char *wrong[] = {"", "x", "-1", "1x", "1 KiBs", "0x10", "1e30", "9E", "nan", ".5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t bytes;
        assert_false(units_size_parse(wrong[i], &bytes));
    }
}

static void test_durations_parsed(void **state) {
    (void)state;
    const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"10", 10000000000},    {"10s", 10000000000},  {"500ms", 500000000},
        {"500 ms", 500000000},  {"2us", 2000},         {"1.5m", 90000000000},
        {"2min", 120000000000}, {"1h", 3600000000000}, {"1d", 86400000000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t ns = 1;
        assert_true(units_duration_parse(cases[i].text, &ns));
        assert_int_equal(ns, cases[i].ns);
    }
    const char *wrong[] = {"", "s", "-1s", "1x", "0x10", "1e30", "nan", "1 s ", "10 sec"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t ns;
        assert_false(units_duration_parse(wrong[i], &ns));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_counts_with_nouns),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_durations_parsed),
        cmocka_unit_test(test_percentages),
        cmocka_unit_test(test_parsing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
