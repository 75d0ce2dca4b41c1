// SPDX-License-Identifier: Apache-2.0
// Tables of lines as Python 3.11 made them, and damaged ones.
#include "runtime/python/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

// Of this function, which begins in line 10 (from co_linetable; lines as dis.findlinestarts has
// them):
//     def f(a):
//         b = [x for x in a
//              if x]
//         for i in b:
//             print(i,
//                   a)
static const uint8_t table[] = {
    0x80, 0x00, 0xf0, 0x02, 0x01, 0x09, 0x0f, 0xf0, 0x00, 0x01, 0x09, 0x0f, 0x90, 0x41,
    0xf0, 0x00, 0x01, 0x09, 0x0f, 0xf1, 0x00, 0x01, 0x09, 0x0f, 0xf4, 0x00, 0x01, 0x09,
    0x0f, 0x80, 0x41, 0xe0, 0x0d, 0x0e, 0xf0, 0x00, 0x02, 0x05, 0x11, 0xf0, 0x00, 0x02,
    0x05, 0x11, 0x88, 0x01, 0xdd, 0x08, 0x0d, 0x88, 0x61, 0xd8, 0x0e, 0x0f, 0xf1, 0x03,
    0x01, 0x09, 0x11, 0xf4, 0x00, 0x01, 0x09, 0x11, 0xf0, 0x00, 0x01, 0x09, 0x11, 0xf0,
    0x00, 0x01, 0x09, 0x11, 0xf0, 0x03, 0x02, 0x05, 0x11, 0xf0, 0x00, 0x02, 0x05, 0x11,
};

enum { FIRST_LINE = 10 };

// Where the table says something else than before, in the order of instructions.
static size_t lines_of(uint32_t *lines, size_t most) {
    size_t count = 0;
    for (uint32_t at = 0; at < 1000; at += 2) {
        uint32_t line = lines_find(PYTHON_LINES_POSITIONS, table, sizeof table, FIRST_LINE, at);
        if (!line) break;
        if ((!count || lines[count - 1] != line) && count < most) lines[count++] = line;
    }
    return count;
}

static void test_known_table(void **state) {
    (void)state;
    const uint32_t wanted[] = {10, 11, 13, 14, 15, 14, 13};
    uint32_t lines[16];
    assert_int_equal(lines_of(lines, 16), sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(lines[i], wanted[i]);
}

static void test_forms(void **state) {
    (void)state;
    const uint8_t none[] = {0x80 | 15 << 3, 0x80 | 13 << 3, 0x05};  // no line; then two lines back
    assert_int_equal(lines_find(PYTHON_LINES_POSITIONS, none, sizeof none, 10, 0), 0);
    assert_int_equal(lines_find(PYTHON_LINES_POSITIONS, none, sizeof none, 10, 2), 8);
    assert_int_equal(lines_find(PYTHON_LINES_POSITIONS, none, sizeof none, 10, 4), 0);
    assert_int_equal(lines_find(PYTHON_LINES_POSITIONS, none, sizeof none, 1, 2),
                     0);  // before the first line
    assert_int_equal(lines_find(PYTHON_LINES_POSITIONS, none, 0, 10, 0), 0);
}

// Forms of earlier versions.
static void test_earlier(void **state) {
    (void)state;
    const uint8_t changes[] = {0, 1, 6, 2, 8, (uint8_t)-1, 4};  // the last byte is half a pair
    const uint32_t wanted[][2] = {{0, 11}, {5, 11}, {6, 13}, {13, 13}, {14, 12}, {500, 12}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(
            lines_find(PYTHON_LINES_CHANGES, changes, sizeof changes, 10, wanted[i][0]),
            wanted[i][1]);
    const uint8_t ranges[] = {4, 1, 2, 0x80, 0, 3, 6, (uint8_t)-2};
    const uint32_t found[][2] = {{0, 11}, {3, 11}, {4, 0}, {5, 0}, {6, 12}, {11, 12}, {12, 0}};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        assert_int_equal(lines_find(PYTHON_LINES_RANGES, ranges, sizeof ranges, 10, found[i][0]),
                         found[i][1]);
}

// Nothing is read outside of the table, whatever it says.
static void test_damaged(void **state) {
    (void)state;
    uint64_t seed = 12;
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)random_below(&seed, 24);
        uint8_t *bytes = test_malloc(size + !size);
        for (size_t at = 0; at < size; at++) bytes[at] = (uint8_t)random_below(&seed, 256);
        lines_find((enum python_lines)(i % 3), bytes, size, 1, (uint32_t)random_below(&seed, 200));
        test_free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_table),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_earlier),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
