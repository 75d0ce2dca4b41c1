// SPDX-License-Identifier: Apache-2.0
// A directory as a run: index and files together, whatever is wrong with either.
#include "tool/model/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

static struct making making;
static char directory[] = "/tmp/cairn-run-test.XXXXXX";
static struct run run;

static int setup(void **state) {
    (void)state;
    strcpy(directory + strlen(directory) - 6, "XXXXXX");
    return mkdtemp(directory) ? 0 : 1;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    run_close(&run);
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

static const char *inside(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_text(const char *name, const char *text, size_t size) {
    making_write(inside(name), text, size);
}

// A recording of process `pid` with one block of `bytes`, begun at `start_ns`.
static void write_recording(const char *name, uint32_t pid, uint32_t ppid, uint64_t bytes,
                            uint64_t start_ns, const char *command) {
    const uint64_t stack[] = {0x400100};
    size_t size;
    making_start(&making);
    making_thread(&making, pid, "main");
    making_book(&making, making_stack(&making, 0, stack, 1), 1, bytes, 0, 0);
    making.header.pid = pid;
    making.header.ppid = ppid;
    making.header.start_clock_ns = start_ns;
    memset(making.header.command, 0, sizeof making.header.command);
    strcpy(making.header.command, command);
    uint8_t *made = making_finish(&making, true, &size);
    making_write(inside(name), made, size);
    free(made);
}

// Starts or continues an index.
static void write_row(const char *file, const char *name, uint32_t pid, uint32_t ppid,
                      uint64_t peak_bytes, uint32_t state_number, uint64_t start_ns) {
    char line[RUN_LINE_MAX];
    struct run_row row = {
        .pid = pid, .ppid = ppid, .state = state_number, .start_clock_ns = start_ns};
    row.figures.peak_bytes = peak_bytes;
    row.figures.allocations = 2;
    snprintf(row.file, sizeof row.file, "%s", file);
    snprintf(row.name, sizeof row.name, "%s", name);
    bool is_new = access(inside("index"), F_OK) != 0;
    FILE *out = fopen(inside("index"), "ae");
    assert_non_null(out);
    if (is_new) fwrite(line, 1, run_row_heading(line), out);
    fwrite(line, 1, run_row_print(&row, line), out);
    fclose(out);
}

static void open_run(size_t rows) {
    struct error error = {""};
    if (!run_open(directory, &run, &error)) fail_msg("%s", error.text);
    assert_int_equal(run.rows.count, rows);
}

static void test_index_and_files(void **state) {
    (void)state;
    write_row("a.1.cairn", "make", 1, 100, 5000, CAIRN_STATE_ENDED, 10);
    write_row("", "sh", 2, 1, 700, CAIRN_STATE_DIED, 20);
    write_row("gone.3.cairn", "cc", 3, 1, 9000, CAIRN_STATE_ENDED, 30);
    write_recording("a.1.cairn", 1, 100, 4, 10, "make");
    write_recording("late.4.cairn", 4, 1, 8000000, 40, "/usr/bin/daemon");
    open_run(4);
    assert_true(run.has_index);
    assert_string_equal(run.rows.items[0].name, "daemon");
    assert_string_equal(run.rows.items[0].file, "late.4.cairn");
    assert_int_equal(run.rows.items[0].figures.peak_bytes, 8000000);
    assert_string_equal(run.rows.items[1].file, "");
    assert_string_equal(run.rows.items[2].file, "a.1.cairn");
    assert_int_equal(run.rows.items[2].figures.peak_bytes, 5000);
    assert_int_equal(run.first, 2);
    assert_int_equal(run.bad_lines + run.bad_files, 0);
    struct run_sums sums = run_sum(&run);
    assert_int_equal(sums.allocations, 7);
    assert_int_equal(sums.small_count, 3);
    assert_int_equal(sums.small_peak_bytes, 9000);
    assert_int_equal(sums.file_count, 2);
}

// What went on after its row was written is read from its file.
static void test_running_row(void **state) {
    (void)state;
    write_row("a.1.cairn", "a", 1, 100, 10, CAIRN_STATE_ENDED, 10);
    write_row("b.2.cairn", "b", 2, 1, 20, CAIRN_STATE_RUNNING, 20);
    write_recording("b.2.cairn", 2, 1, 3000, 20, "b");
    open_run(2);
    assert_string_equal(run.rows.items[0].name, "b");
    assert_int_equal(run.rows.items[0].figures.peak_bytes, 3000);
    assert_int_equal(run.rows.items[0].state, CAIRN_STATE_ENDED);
}

static void test_last_image_is_first(void **state) {
    (void)state;
    write_row("", "sh", 5, 100, 10, CAIRN_STATE_DIED, 10);
    write_row("", "child", 6, 5, 30, CAIRN_STATE_ENDED, 15);
    write_row("", "make", 5, 100, 20, CAIRN_STATE_ENDED, 20);
    open_run(3);
    assert_string_equal(run.rows.items[run.first].name, "make");
}

static void test_find(void **state) {
    (void)state;
    struct error error;
    size_t index;
    write_row("cc1.7.cairn", "cc1", 7, 1, 10, CAIRN_STATE_ENDED, 10);
    write_row("cc1.8.cairn", "cc1", 8, 1, 20, CAIRN_STATE_ENDED, 20);
    write_row("as.9.cairn", "as", 9, 1, 30, CAIRN_STATE_ENDED, 30);
    write_recording("cc1.7.cairn", 7, 1, 1, 10, "cc1");
    write_recording("cc1.8.cairn", 8, 1, 1, 20, "cc1");
    open_run(3);
    assert_true(run_find(&run, "as", &index, &error));
    assert_int_equal(index, 0);
    assert_true(run_find(&run, "8", &index, &error));
    assert_int_equal(run.rows.items[index].pid, 8);
    assert_true(run_find(&run, "cc1.7", &index, &error));
    assert_true(run_find(&run, "cc1.7.cairn", &index, &error));
    assert_int_equal(run.rows.items[index].pid, 7);
    assert_false(run_find(&run, "cc1", &index, &error));
    assert_non_null(strstr(error.text, "2 processes are called \"cc1\""));
    assert_non_null(strstr(error.text, "cc1 8 (cc1.8.cairn), cc1 7 (cc1.7.cairn)"));
    assert_false(run_find(&run, "ld", &index, &error));
    assert_non_null(strstr(error.text, "no process \"ld\", but as 9, cc1 8, cc1 7"));
    assert_false(run_find(&run, "", &index, &error));
}

static void test_damage(void **state) {
    (void)state;
    write_row("a.1.cairn", "a", 1, 100, 10, CAIRN_STATE_ENDED, 10);
    FILE *out = fopen(inside("index"), "ae");
    fputs("nonsense\n\n# a remark\n../x.cairn\t1\nwithout an end", out);
    fwrite("\0\n", 1, 2, out);
    fputs("cut", out);
    fclose(out);
    write_text("bad.2.cairn", "not a recording", 15);
    mkdir(inside("dir.cairn"), 0700);
    open_run(1);
    assert_int_equal(run.bad_lines, 5);
    assert_int_equal(run.bad_files, 1);
    assert_int_equal(run.inner_count, 1);  // a run of its own
    assert_string_equal(run.inner, "dir.cairn");
}

static void test_no_index(void **state) {
    (void)state;
    write_recording("a.1.cairn", 1, 100, 10, 10, "a");
    write_recording("b.2.cairn", 2, 1, 20, 20, "b");
    assert_false(run_has_index(directory));
    open_run(2);
    assert_false(run.has_index);
    assert_int_equal(run.first, 1);
    write_text("index", "of something else\n", 18);
    run_close(&run);
    open_run(2);
    assert_int_equal(run.bad_lines, 1);
}

static void test_nothing(void **state) {
    (void)state;
    open_run(0);
    run_close(&run);
    struct error error;
    assert_false(run_open("/no/such/directory", &run, &error));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_index_and_files),
        TEST(test_running_row),
        TEST(test_last_image_is_first),
        TEST(test_find),
        TEST(test_damage),
        TEST(test_no_index),
        TEST(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
