// SPDX-License-Identifier: Apache-2.0
#include "tool/model/run_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct run_row sample = {.file = "cc1.12.cairn",
                                      .parent = "make.11.cairn",
                                      .name = "cc1",
                                      .pid = 12,
                                      .ppid = 11,
                                      .start_unix_ns = 1700000000000000000u,
                                      .start_clock_ns = 5000,
                                      .duration_ns = 70,
                                      .state = CAIRN_STATE_ENDED,
                                      .has_exit = true,
                                      .exit_status = 3,
                                      .figures = {.allocations = 10,
                                                  .allocated_bytes = 1000,
                                                  .frees = 4,
                                                  .failed = 1,
                                                  .inherited_blocks = 2,
                                                  .inherited_bytes = 20,
                                                  .peak_bytes = 700,
                                                  .peak_ns = 60,
                                                  .exit_blocks = 8,
                                                  .exit_bytes = -5,
                                                  .own_ns = 9,
                                                  .lost = 2},
                                      .rss_peak_bytes = 4096,
                                      .cpu_ns = 50};

static void check_same(const struct run_row *row) {
    char line[RUN_LINE_MAX];
    struct run_row back;
    size_t size = run_row_print(row, line);
    assert_int_equal(line[size - 1], '\n');
    line[size - 1] = 0;
    assert_int_equal(strlen(line), size - 1);
    assert_true(run_row_parse(line, &back));
    assert_string_equal(back.file, row->file);
    assert_string_equal(back.parent, row->parent);
    assert_string_equal(back.name, row->name);
    assert_string_equal(back.problem, row->problem);
    assert_int_equal(back.pid, row->pid);
    assert_int_equal(back.state, row->state);
    assert_int_equal(back.stop_reason, row->stop_reason);
    assert_int_equal(back.has_exit, row->has_exit);
    assert_int_equal(back.exit_status, row->exit_status);
    assert_int_equal(back.exit_signal, row->exit_signal);
    assert_memory_equal(&back.figures, &row->figures, sizeof row->figures);
    assert_int_equal(back.rss_peak_bytes, row->rss_peak_bytes);
    assert_int_equal(back.cpu_ns, row->cpu_ns);
    assert_int_equal(back.start_unix_ns, row->start_unix_ns);
    assert_int_equal(back.start_clock_ns, row->start_clock_ns);
    assert_int_equal(back.duration_ns, row->duration_ns);
}

static void test_golden_line(void **state) {
    (void)state;
    char line[RUN_LINE_MAX];
    line[run_row_print(&sample, line)] = 0;
    assert_string_equal(line,
                        "cc1.12.cairn\t12\t11\tmake.11.cairn\tcc1\t1700000000000000000\t5000\t"
                        "70\tended\tstatus:3\t10\t1000\t4\t1\t2\t20\t700\t60\t8\t-5\t4096\t"
                        "50\t9\t2\tsmall\t0\t0\t0\t0\t0\t0\t-\n");
    check_same(&sample);
}

static void test_forms(void **state) {
    (void)state;
    struct run_row row = sample;
    row.file[0] = row.parent[0] = 0;
    row.has_exit = true;
    row.exit_status = 0;
    row.exit_signal = 9;
    row.figures.peak_bytes = UINT64_MAX;
    check_same(&row);
    row = sample;
    row.figures.is_sampled = true;
    row.figures.rate_bytes = 1 << 19;
    row.figures.peak_estimate = estimate_of_interval(6900000, 48);
    row.figures.exit_estimate = estimate_of_interval(70, 3);
    row.figures.exit_estimate.blocks_variance = estimate_variance(1);
    check_same(&row);
    row = sample;
    row.has_exit = false;
    row.exit_status = 0;
    row.state = CAIRN_STATE_DIED;
    row.stop_reason = CAIRN_STOP_EXEC;
    check_same(&row);
    row.state = CAIRN_STATE_ENDED;
    row.stop_reason = CAIRN_STOP_LEFT;
    check_same(&row);
    row = sample;
    strcpy(row.problem, "No space left on device");
    check_same(&row);
}

static void test_names(void **state) {
    (void)state;
    static const char *const names[] = {"-", "#",      "a\tb\nc",   "\033[2J", "\\x41",
                                        "",  "a b\\c", "\xff\xfe ", "\x7f"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct run_row row = sample;
        snprintf(row.name, sizeof row.name, "%s", names[i]);
        check_same(&row);
        char line[RUN_LINE_MAX];
        line[run_row_print(&row, line)] = 0;
        assert_ptr_equal(strpbrk(line, "\033\x7f\\ "), strchr(line, '\\'));
    }
    struct run_row row = sample;
    memset(row.name, '\n', sizeof row.name - 1);
    memset(row.file, '\n', sizeof row.file - 1);
    memcpy(row.file + sizeof row.file - sizeof ".cairn", ".cairn", sizeof ".cairn");
    memcpy(row.parent, row.file, sizeof row.parent);
    check_same(&row);
}

static void test_file_names(void **state) {
    (void)state;
    assert_true(run_row_is_file_name("a.1.cairn"));
    static const char *const wrong[] = {"../a.cairn", "/a.cairn", ".cairn", "index", "a.cairn.save",
                                        "x/y.cairn",  "",         "..",     "a"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(run_row_is_file_name(wrong[i]));
        struct run_row row = sample;
        char line[RUN_LINE_MAX];
        snprintf(row.file, sizeof row.file, "%s", wrong[i]);
        line[run_row_print(&row, line) - 1] = 0;
        assert_int_equal(run_row_parse(line, &row), !*wrong[i]);
    }
}

static void check_refused(const char *text) {
    char line[RUN_LINE_MAX];
    struct run_row row;
    snprintf(line, sizeof line, "%s", text);
    if (run_row_parse(line, &row)) fail_msg("accepted: %s", text);
}

// Every field in turn is missing, or something else.
static void test_damage(void **state) {
    (void)state;
    static const char *const instead[] = {
        "", "\\", "\\x", "\\x4", "\\x00", "-1", "1x", "0x10", "99999999999999999999", " 1"};
    enum { FIELDS = 31, ANY_FIELD = 24, TEXT_FIELDS = 0x1 | 0x8 | 0x10 | 0x100 };
    char whole[RUN_LINE_MAX], line[RUN_LINE_MAX];
    whole[run_row_print(&sample, whole) - 1] = 0;
    for (int field = 0; field < FIELDS; field++)
        for (size_t i = 0; i < sizeof instead / sizeof *instead; i++) {
            bool is_text = (TEXT_FIELDS >> field & 1) != 0;
            bool is_signed = field == 18 || field == 19 || field > ANY_FIELD + 1;
            if (field == ANY_FIELD || (is_text && i > 4)) continue;
            if (is_signed && i == 5) continue;
            size_t used = 0;
            char copy[RUN_LINE_MAX], *rest = copy;
            strcpy(copy, whole);
            for (int at = 0; rest; at++) {
                const char *word = strsep(&rest, "\t");
                used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", at ? "\t" : "",
                                         at == field ? instead[i] : word);
            }
            check_refused(line);
        }
    check_refused("");
    check_refused("\t");
    check_refused("cc1.12.cairn\t12");
}

static void test_any_bytes(void **state) {
    (void)state;
    char whole[RUN_LINE_MAX], line[RUN_LINE_MAX];
    size_t size = run_row_print(&sample, whole);
    srand(1);
    for (int i = 0; i < 200000; i++) {
        struct run_row row;
        memcpy(line, whole, size);
        line[size - 1] = 0;
        for (int change = rand() % 4; change >= 0; change--)
            line[(size_t)rand() % (size - 1)] = (char)(rand() % 4 ? rand() : '\t');
        if (!run_row_parse(line, &row)) continue;
        assert_true(!*row.file || run_row_is_file_name(row.file));
        check_same(&row);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_line), cmocka_unit_test(test_forms),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_damage),      cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
