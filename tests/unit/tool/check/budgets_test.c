// SPDX-License-Identifier: Apache-2.0
// Budgets from a file, and what a recording of known values makes of them.
#include "tool/check/budgets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"
#include "tool/cmds/commands.h"

static char directory[] = "/tmp/cairn-budgets-XXXXXX";
static char file_path[64], recording_path[64];
static struct budgets budgets;
static struct error error;

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// "sample" held 3 blocks, 300 bytes, at its peak, and 1 of 100 at the end.
static int setup_all(void **state) {
    static struct making making;
    const uint64_t address = 0x401000;
    size_t size;
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(file_path, sizeof file_path, "%s/budgets.toml", directory);
    snprintf(recording_path, sizeof recording_path, "%s/made.cairn", directory);
    making_start(&making);
    making_module(&making, "/bin/program", 0x400000, 0x10000, 0, 0x11);
    uint32_t thread = making_thread(&making, 100, "main");
    uint32_t cell = making_stack(&making, thread, &address, 1);
    making_book(&making, cell, 3, 300, 0, 0);
    making_peak(&making, 1000);
    making_book(&making, cell, 0, 0, 2, 200);
    void *bytes = making_finish(&making, true, &size);
    write_file(recording_path, bytes, size);
    free(bytes);
    return 0;
}

static int teardown_all(void **state) {
    (void)state;
    unlink(file_path);
    unlink(recording_path);
    return rmdir(directory);
}

static int teardown(void **state) {
    (void)state;
    budgets_free(&budgets);
    budgets = (struct budgets){0};
    return 0;
}

static bool read_text(const char *text) {
    write_file(file_path, text, strlen(text));
    budgets = (struct budgets){0};
    return budgets_read_file(file_path, &budgets, &error);
}

static void check_refused(const char *text, const char *said) {
    assert_false(read_text(text));
    if (!strstr(error.text, said)) fail_msg("\"%s\" does not say \"%s\"", error.text, said);
    budgets_free(&budgets);
}

static void test_limits_by_program(void **state) {
    (void)state;
    assert_true(
        read_text("max-peak = \"2MiB\"\n\n[\"worker*\"]\nmax-calls = 1e6\nmax-temporary = \"40%\"\n"
                  "\n[\"region:parse\"]\nmax-allocated = 1000\n"));
    assert_int_equal(budgets.list.count, 4);
    const struct budget *list = budgets.list.items;
    assert_string_equal(list[0].pattern, "*");
    assert_int_equal(list[0].measure, MEASURE_PEAK);
    assert_int_equal(list[0].limit, 2 << 20);
    assert_string_equal(list[1].pattern, "worker*");
    assert_int_equal(list[1].limit, 1000000);
    assert_true(list[2].share > 0.399 && list[2].share < 0.401);
    assert_true(list[3].is_region);
    assert_string_equal(list[3].pattern, "parse");
}

static void test_a_baseline_is_a_budget_for_each_measure(void **state) {
    (void)state;
    assert_true(read_text("baseline = \"old.cairn\"\ntolerance = \"2%\"\n"));
    assert_int_equal(budgets.list.count, 4);
    for (size_t i = 0; i < budgets.list.count; i++) {
        assert_string_equal(budgets.list.items[i].baseline, "old.cairn");
        assert_true(budgets.list.items[i].tolerance > 0.0199);
        assert_true(budgets.list.items[i].tolerance < 0.0201);
    }
}

static void test_what_is_wrong_is_named_with_its_line(void **state) {
    (void)state;
    check_refused("", "no budget in it");
    check_refused("\nmax-peak = \"much\"\n",
                  ":2: max-peak needs a size such as 200MiB, not \"much\"");
    check_refused("max-heap = 3\n", ":1: there is no budget \"max-heap\"");
    check_refused("max-temporary = \"x%\"\n", ":1: max-temporary needs a share");
    check_refused("baseline = \"a\"\ntolerance = \"-1%\"\n", ":2: tolerance needs a share");
    check_refused("[\"region:parse\"]\nbaseline = \"a\"\n", ":2: a region has limits of its own");
    assert_false(budgets_read_file("/no/such/file", &budgets, &error));
    assert_non_null(strstr(error.text, "No such file"));
}

static void check_verdict(const char *text, bool holds) {
    struct command_args args = {.command = command_find("check")};
    struct results results = {0};
    assert_true(read_text(text));
    if (!budgets_evaluate(&budgets, recording_path, NULL, &args, &results, &error))
        fail_msg("%s: %s", text, error.text);
    assert_int_equal(results.list.count, 1);
    if (results.list.items[0].holds != holds) fail_msg("%s: %s", text, results.list.items[0].text);
    assert_int_equal(results.failed_count, holds ? 0 : 1);
    results_free(&results);
    budgets_free(&budgets);
}

static void test_verdicts(void **state) {
    (void)state;
    check_verdict("max-exit = 100\n", true);
    check_verdict("max-exit = 99\n", false);
    check_verdict("max-peak = 300\n", true);
    check_verdict("max-peak = 299\n", false);
    check_verdict("max-allocated = 300\n", true);
    check_verdict("max-allocated = 299\n", false);
    check_verdict("[sample]\nmax-exit = 99\n", false);
    check_verdict("[\"sam*\"]\nmax-exit = 100\n", true);
}

// A budget for a program that did not run is a mistake in the file, not a success.
static void test_a_budget_for_nobody_does_not_hold(void **state) {
    (void)state;
    check_verdict("[other]\nmax-exit = 1000000\n", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_limits_by_program, teardown),
        cmocka_unit_test_teardown(test_a_baseline_is_a_budget_for_each_measure, teardown),
        cmocka_unit_test_teardown(test_what_is_wrong_is_named_with_its_line, teardown),
        cmocka_unit_test_teardown(test_verdicts, teardown),
        cmocka_unit_test_teardown(test_a_budget_for_nobody_does_not_hold, teardown),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
