// SPDX-License-Identifier: Apache-2.0
// Folding, searching and pivots on a small tree, without a terminal.
#include "tool/tui/browser_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

#define BASE 0x555555554000u
enum { MAIN = 0x100, LOAD = 0x200, PARSE = 0x300, TABLE = 0x400 };

static const struct frame frames[] = {
    {"main", "/src/a.c", "/bin/sample", MAIN, 1, false, false, false, true, false, false, false, 0},
    {"load", "/src/a.c", "/bin/sample", LOAD, 2, false, false, false, true, false, false, false, 0},
    {"parse", "/src/a.c", "/bin/sample", PARSE, 3, false, false, false, true, false, false, false,
     0},
    {"table", "/src/b.c", "/bin/sample", TABLE, 4, false, false, false, true, false, false, false,
     0},
};

static struct making making;
static struct recording recording;
static struct profile profile;
static struct browser browser;
static uint8_t *bytes;

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    (void)context;
    uint64_t address = profile.places.list.items[place].address + 1;
    *count = 1;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        if (frames[i].offset == address) return &frames[i];
    fail();
    return NULL;
}
static const struct frame_names names = {.of_place = frames_of};

static void add_stack(uint32_t a, uint32_t b, uint32_t c, uint32_t size) {
    const uint64_t addresses[] = {BASE + a, BASE + b, BASE + c};
    making_book(&making, making_stack(&making, 0, addresses, c ? 3 : 2), 1, size, 0, 0);
}

// main 1000 → load 700 → parse 600; main → table 300.
static int setup(void **state) {
    (void)state;
    size_t size;
    making_start(&making);
    making_module(&making, "/bin/sample", BASE, 0x10000, BASE, 0x11);
    making_thread(&making, 4242, "sample");
    add_stack(MAIN, LOAD, PARSE, 600);
    add_stack(MAIN, LOAD, 0, 100);
    add_stack(MAIN, TABLE, 0, 300);
    making_peak(&making, 1000);
    bytes = making_finish(&making, true, &size);
    assert_true(recording_open_memory(bytes, size, &recording, NULL));
    assert_true(profile_build(&recording, &profile, NULL));
    const struct view_options view = {.by = MEASURE_PEAK};
    assert_true(browser_open(&browser, &profile, &names, &view, NULL));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    browser_close(&browser);
    profile_free(&profile);
    recording_close(&recording);
    free(bytes);
    return 0;
}

// The lines' functions, each indented by its level; the selected one in brackets.
static void check_lines(const char *expected) {
    char text[256] = "";
    for (size_t i = 0; i < browser.lines.count; i++) {
        const struct browser_line *line = &browser.lines.items[i];
        bool is_selected = i == browser.selected;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%*s%s%s%s|", (int)line->level, "",
                 is_selected ? "[" : "", browser.calls.nodes.items[line->node].frame->function,
                 is_selected ? "]" : "");
    }
    assert_string_equal(text, expected);
}

static void test_folding(void **state) {
    (void)state;
    check_lines("[main]|");
    assert_true(browser_unfold(&browser));
    check_lines("[main]| load| table|");
    assert_true(browser_unfold(&browser));
    check_lines("main| [load]| table|");
    assert_true(browser_unfold(&browser));
    check_lines("main| [load]|  parse| table|");
    browser_move(&browser, 1);
    assert_true(browser_unfold(&browser));  // nothing below it
    assert_true(browser_fold(&browser));    // to its caller
    check_lines("main| [load]|  parse| table|");
    assert_true(browser_fold(&browser));
    check_lines("main| [load]| table|");
    browser_move(&browser, 100);
    check_lines("main| load| [table]|");
    browser_move(&browser, -100);
    assert_true(browser_fold(&browser));
    assert_true(browser_fold(&browser));
    check_lines("[main]|");
    assert_true(browser_unfold_path(&browser));
    check_lines("main| load|  [parse]| table|");
}

static void test_search(void **state) {
    (void)state;
    struct pattern *pattern;
    bool is_found;
    assert_true(pattern_compile("^parse$|b\\.c", &pattern, NULL));
    assert_true(browser_search(&browser, pattern, &is_found));
    assert_true(is_found);
    check_lines("main| load|  [parse]| table|");
    assert_true(browser_search(&browser, pattern, &is_found));
    check_lines("main| load|  parse| [table]|");
    assert_true(browser_search(&browser, pattern, &is_found));  // from the start again
    check_lines("main| load|  [parse]| table|");
    pattern_free(pattern);
    assert_true(pattern_compile("nothing", &pattern, NULL));
    assert_true(browser_search(&browser, pattern, &is_found));
    assert_false(is_found);
    check_lines("main| load|  [parse]| table|");
    pattern_free(pattern);
}

static void test_pivot(void **state) {
    (void)state;
    assert_true(browser_unfold(&browser));
    browser_move(&browser, 1);
    assert_true(browser_pivot(&browser, true, NULL));
    assert_int_equal(browser.calls.nodes.items[CALLS_ROOT].value, 700);
    assert_true(browser_unfold(&browser));
    check_lines("[load]| main|");
    assert_true(browser_pivot(&browser, false, NULL));
    assert_true(browser_unfold(&browser));
    check_lines("[load]| parse|");
    assert_true(browser_whole(&browser, NULL));
    assert_int_equal(browser.calls.nodes.items[CALLS_ROOT].value, 1000);
    check_lines("[main]|");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_folding), TEST(test_search), TEST(test_pivot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
