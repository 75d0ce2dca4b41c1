// SPDX-License-Identifier: Apache-2.0
// Order, search, selection and marks of the list of `cairn top`, without a terminal; and its lines.
#include "tool/tui/top_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/base/text.h"
#include "tool/render/top_json.h"
#include "tool/tui/window.h"

#define BASE 0x555555554000u
#define SECOND 1000000000u
enum { CAPACITY = 1 << 20, MAIN = 0x100, LOAD = 0x200, PARSE = 0x300, TABLE = 0x400 };

static const struct frame frames[] = {
    {"main", "/src/a.c", "/bin/sample", MAIN, 1, false, false, false, true, false, false, false, 0},
    {"load", "/src/a.c", "/bin/sample", LOAD, 2, false, false, false, true, false, false, false, 0},
    {"parse", "/src/p.c", "/bin/sample", PARSE, 3, false, false, false, true, false, false, false,
     0},
    {"table", "/src/b.c", "/bin/sample", TABLE, 4, false, false, false, true, false, false, false,
     0},
};

static struct making making;
static struct live live;
static struct top top;
static struct error error;
static uint32_t parse, load, table;
static char path[64];

static const struct frame *frames_of(void *context, uint32_t place, size_t *count) {
    (void)context;
    uint64_t address = live.profile.places.list.items[place].address + 1;
    *count = 1;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        if (frames[i].offset == address) return &frames[i];
    fail();
    return NULL;
}
static const struct frame_names names = {.of_place = frames_of};

static uint32_t add_stack(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t addresses[] = {BASE + a, BASE + b, BASE + c};
    return making_stack(&making, 0, addresses, c ? 3 : 2);
}

static void look(uint64_t second) {
    making_write_sparse(&making, path, CAPACITY);
    assert_true(live_look(&live, (1 + second) * SECOND, &error));
    top.named_nodes = live.profile.tree.nodes.count;
    assert_true(top_list(&top));
}

// main → load → parse 6000 in 6, main → load 1000 in 1, main → table 3000 in 30, at 1 s.
static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "top_test.%d", (int)getpid());
    making_start(&making);
    making.header.state = CAIRN_STATE_RUNNING;
    making.header.end_ns = 0;
    making.header.start_clock_ns = SECOND;
    making_module(&making, "/bin/sample", BASE, 0x10000, BASE, 0x11);
    making_thread(&making, 4242, "sample");
    parse = add_stack(MAIN, LOAD, PARSE);
    load = add_stack(MAIN, LOAD, 0);
    table = add_stack(MAIN, TABLE, 0);
    making_book(&making, parse, 6, 6000, 0, 0);
    making_book(&making, load, 1, 1000, 0, 0);
    making_book(&making, table, 40, 4000, 10, 1000);
    making_write_sparse(&making, path, CAPACITY);
    assert_true(live_open(path, &live, &error));
    top_start(&top, LIVE_BYTES);
    top_attach(&top, &live, &names, 4242);
    look(1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    top_close(&top);
    live_close(&live);
    unlink(path);
    return 0;
}

// Innermost function of each row; the selected one in brackets.
static void check_rows(const char *expected) {
    char text[256] = "";
    for (size_t i = 0; i < top.rows.count; i++) {
        uint32_t node = live.whole.stacks.items[top.rows.items[i].stack].node;
        size_t count, used = strlen(text);
        const struct frame *frame =
            frames_of(NULL, live.profile.tree.nodes.items[node].place, &count);
        snprintf(text + used, sizeof text - used, i == top.selected ? "[%s] " : "%s ",
                 frame->function);
    }
    assert_string_equal(text, expected);
}

static void test_order(void **state) {
    (void)state;
    check_rows("[parse] table load ");
    assert_int_equal(top.sums.bytes, 10000);
    assert_int_equal(top.sums.blocks, 37);
    making_book(&making, load, 1, 8000, 0, 0);
    making_book(&making, parse, 0, 0, 1, 1000);
    look(2);
    check_rows("[load] parse table ");
    top_sort(&top, LIVE_GROWTH);
    assert_true(top_list(&top));
    check_rows("[load] parse ");  // one grew, one shrank
    top_sort(&top, LIVE_RATE);
    assert_true(top_list(&top));
    check_rows("[load] ");
    top_sort(&top, LIVE_TEMPORARY);
    assert_true(top_list(&top));
    check_rows("");
}

static void test_selection_follows_its_stack(void **state) {
    (void)state;
    top_move(&top, 1);
    check_rows("parse [table] load ");
    making_book(&making, table, 1, 9000, 0, 0);
    look(2);
    check_rows("[table] parse load ");
    top_move(&top, -10);  // to the top, where it stays with what comes there
    making_book(&making, load, 1, 50000, 0, 0);
    look(3);
    check_rows("[load] table parse ");
    top_move(&top, 100);
    check_rows("load table [parse] ");
}

static void test_a_stack_alone_stays(void **state) {
    (void)state;
    top_move(&top, 2);
    top_enter(&top);
    assert_int_equal(top.page, TOP_STACK);
    assert_int_equal(live.whole.stacks.items[top.shown].allocated_bytes, 1000);
    making_book(&making, load, 0, 0, 1, 1000);  // holds nothing any more
    look(2);
    check_rows("parse [table] ");
    assert_int_equal(live.whole.stacks.items[top.shown].allocated_bytes, 1000);
}

static void test_search(void **state) {
    (void)state;
    assert_true(top_search(&top, "^load$", &error));
    assert_true(top_list(&top));
    check_rows("[parse] load ");
    assert_int_equal(top.sums.bytes, 7000);
    assert_true(top_search(&top, "b\\.c", &error));
    assert_true(top_list(&top));
    check_rows("[table] ");
    assert_false(top_search(&top, "x(", &error));
    assert_true(top_list(&top));
    check_rows("[table] ");                           // the last one goes on
    assert_true(top_search(&top, "sample", &error));  // the module
    assert_true(top_list(&top));
    check_rows("[parse] table load ");
    // stacks whose names are not known follow later
    making_book(&making, add_stack(MAIN, PARSE, TABLE), 1, 100000, 0, 0);
    making_write_sparse(&making, path, CAPACITY);
    assert_true(live_look(&live, 5ull * SECOND, &error));
    assert_true(top_list(&top));
    check_rows("[parse] table load ");
    top.named_nodes = live.profile.tree.nodes.count;
    assert_true(top_list(&top));
    check_rows("[table] parse table load ");
    assert_true(top_search(&top, "", &error));
    assert_null(top.view.search);
}

static void test_survivors(void **state) {
    (void)state;
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "", SECOND);
    live_begin_growth(&live, making.header.totals.generation);
    top_marked(&top);
    assert_string_equal(top.view.since, "the mark at 1.00 s");
    top.view.are_survivors = true;
    assert_true(top_list(&top));
    check_rows("");
    making_book(&making, add_stack(MAIN, TABLE, 0), 2, 500, 0, 0);
    look(2);
    check_rows("[table] ");
    assert_int_equal(top.sums.bytes, 500);
    assert_int_equal(top.sums.blocks, 2);
    top.view.are_survivors = false;
    assert_true(top_list(&top));
    check_rows("[parse] table load ");
}

static void test_view(void **state) {
    (void)state;
    top_move(&top, 2);
    top_keep_in_view(&top, 2);
    assert_int_equal(top.first, 1);
    top_move(&top, -2);
    top_keep_in_view(&top, 2);
    assert_int_equal(top.first, 0);
    top_attach(&top, NULL, NULL, 0);
    assert_true(top_list(&top));
    assert_int_equal(top.rows.count, 0);
    top_move(&top, 1);
    assert_int_equal(top.selected, 0);
    top_enter(&top);
    assert_int_equal(top.page, TOP_LIST);
}

// What the functions of the screen print in so many columns.
static char *text_of(size_t columns, bool is_stack) {
    char *text = NULL;
    size_t size;
    struct terminal terminal = {
        .out = open_memstream(&text, &size), .columns = columns, .is_terminal = true};
    assert_non_null(terminal.out);
    top_print_title(&terminal, &top.view);
    if (is_stack) {
        assert_true(top_print_stack(&terminal, &top.view, top.rows.items[0].stack));
    } else {
        top_print_what(&terminal, &top.view, &top.sums);
        top_print_columns(&terminal, &top.view);
        for (size_t i = 0; i < top.rows.count; i++)
            assert_true(top_print_row(&terminal, &top.view, top.rows.items[i].stack));
    }
    fclose(terminal.out);
    return text;
}

static void check_details(const char *expected) {
    char *text = NULL;
    size_t size;
    struct terminal terminal = {.out = open_memstream(&text, &size), .columns = 80};
    assert_non_null(terminal.out);
    top_print_details(&terminal, &top.view);
    fclose(terminal.out);
    if (strncmp(text, expected, strlen(expected)) != 0) fail_msg("%s", text);
    free(text);
}

static void check_text(size_t columns, bool is_stack, const char *expected) {
    char *text = text_of(columns, is_stack);
    assert_string_equal(text, expected);
    free(text);
}

static void test_lines(void **state) {
    (void)state;
    top.view.rss_bytes = 2 << 20;
    making_book(&making, load, 10, 20480, 0, 0);
    look(3);
    check_text(100, false,
               "sample 4242 recording, 3.00 s \xc2\xb7 live 29.8 KiB \xc2\xb7 +10.0 KiB/s \xc2\xb7 "
               "RSS 2.0 "
               "MiB \xc2\xb7 peak 29.8 KiB\n"
               "3 stacks by what they hold: 29.8 KiB in 47 blocks; growth since the start of this "
               "view\n"
               "     LIVE    GROWTH       RATE  TEMP     BLOCKS  STACK\n"
               " 21.0 KiB +20.0 KiB 10.0 KiB/s     -         11  load a.c:2 \xe2\x86\x90 main\n"
               "  5.9 KiB         -          -     -          6  parse p.c:3 \xe2\x86\x90 load "
               "\xe2\x86\x90 main\n"
               "  2.9 KiB         -          -     -         30  table b.c:4 \xe2\x86\x90 main\n");
    check_text(40, false,
               "sample 4242 recording, 3.00 s\n"
               "3 stacks by what they hold: 29.8 KiB in\xe2\x80\xa6\n"
               "     LIVE    GROWTH  STACK\n"
               " 21.0 KiB +20.0 KiB  load a.c:2 \xe2\x86\x90 main\n"
               "  5.9 KiB         -  parse p.c:3 \xe2\x86\x90 load\n"
               "  2.9 KiB         -  table b.c:4 \xe2\x86\x90 main\n");
    check_details(
        "  live 29.8 KiB in 47 blocks \xc2\xb7 +10.0 KiB/s \xc2\xb7 RSS 2.0 MiB \xc2\xb7 peak "
        "29.8 KiB\n"
        "  allocates 10.0 KiB/s in 5 calls/s \xc2\xb7 allocated 30.7 KiB in 57 calls\n");
    top.view.is_frozen = true;
    check_text(
        90, true,
        "sample 4242 recording, 3.00 s (frozen) \xc2\xb7 live 29.8 KiB \xc2\xb7 +10.0 KiB/s "
        "\xc2\xb7 "
        "RSS "
        "2.0 MiB\n"
        "  live 21.0 KiB in 11 blocks, 70 % of the heap\n"
        "  growth +20.0 KiB since the start of this view \xc2\xb7 allocated 21.0 KiB in 11 calls\n"
        "  10.0 KiB/s in 5 calls/s\n"
        "\n"
        "          load                      a.c:2\n"
        "          main                      a.c:1\n");
}

// No line is wider than the screen, however narrow.
static void test_width(void **state) {
    (void)state;
    making_book(&making, load, 1000000, 1ull << 52, 3, 5);
    look(2);
    for (size_t columns = 20; columns < 130; columns++)
        for (int by = 0; by < LIVE_MEASURES; by++) {
            top.view.by = (enum live_measure)by;
            top.view.is_plain_number = columns % 2;
            char *text = text_of(columns, false);
            for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                if (columns >= 40 && text_columns(line) > columns)
                    fail_msg("%zu columns: %s", columns, line);
            free(text);
            free(text_of(columns, true));
        }
}

static void test_json_of_no_stack(void **state) {
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_true(top_json_print(out, &top.view, NULL, 0, &error));
    fclose(out);
    assert_non_null(strstr(text, "\"schema\":\"cairn.top/1\""));
    assert_non_null(strstr(text, "\"live_bytes\":10000"));
    assert_non_null(strstr(text, "\"rss_bytes\":null"));
    assert_non_null(strstr(text, "\"stacks\":[]"));
    free(text);
}

static void test_ascii(void **state) {
    (void)state;
    char text[] = "a \xe2\x86\x90 b\xe2\x80\xa6 \xe2\x96\x81\xe2\x96\x88 \xc3\xa9 \xf0\x9f\x98\x80";
    window_to_ascii(text);
    assert_string_equal(text, "a < b~ _# ? ?");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_order),     TEST(test_selection_follows_its_stack),
        TEST(test_search),    TEST(test_a_stack_alone_stays),
        TEST(test_survivors), TEST(test_view),
        TEST(test_lines),     TEST(test_width),
        TEST(test_ascii),     TEST(test_json_of_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
