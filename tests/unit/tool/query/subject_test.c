// SPDX-License-Identifier: Apache-2.0
// Checks words that name a file, a directory with one recording, several or none, the newest one
// here; and a process of it.
#include "tool/query/subject.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

static char place[] = "/tmp/subject_test.XXXXXX";

static void make_recording(const char *path) {
    static struct making making;
    size_t size;
    making_sample(&making);
    uint8_t *bytes = making_finish(&making, true, &size);
    making_write(path, bytes, size);
    free(bytes);
}

static void make_empty(const char *path) {
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
}

static void set_age(const char *path, long seconds) {
    const struct timespec times[] = {{.tv_sec = 1000000 - seconds}, {.tv_sec = 1000000 - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(place) || chdir(place)) return -1;
    return mkdir("one", 0700) || mkdir("two", 0700) || mkdir("none", 0700) || mkdir("here", 0700);
}

static int tear_down(void **state) {
    (void)state;
    static const char *const files[] = {
        "one/a.1.cairn",    "two/a.1.cairn",      "two/b.2.cairn", "here/old.1.cairn",
        "here/new.2.cairn", "here/empty.3.cairn", "a@b.cairn"};
    static const char *const directories[] = {"one", "two", "none", "here"};
    if (chdir(place)) return -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) rmdir(directories[i]);
    return rmdir(place);
}

static void check_refused(const char *word, const char *why) {
    struct subject subject;
    struct error error = {""};
    if (subject_find(word, &subject, &error)) fail_msg("%s is found", word);
    if (!strstr(error.text, why)) fail_msg("%s: %s", word, error.text);
}

static void test_directories(void **state) {
    (void)state;
    struct subject subject;
    struct error error;
    make_recording("one/a.1.cairn");
    make_recording("two/a.1.cairn");
    make_recording("two/b.2.cairn");
    assert_true(subject_find("one", &subject, &error));
    assert_string_equal(subject.path, "one/a.1.cairn");
    assert_false(subject.is_run);
    assert_true(subject_find("two", &subject, &error));
    assert_string_equal(subject.path, "two");
    assert_true(subject.is_run);
    check_refused("none", "no recording in this directory");
}

// The newest one that is a recording; of a newer file that is none it says so.
static void test_newest(void **state) {
    (void)state;
    struct subject subject;
    struct error error;
    assert_int_equal(chdir("none"), 0);
    check_refused(NULL, "make one with: cairn run");
    assert_int_equal(chdir("../here"), 0);
    make_recording("old.1.cairn");
    make_recording("new.2.cairn");
    make_empty("empty.3.cairn");
    set_age("old.1.cairn", 200);
    set_age("new.2.cairn", 100);
    set_age("empty.3.cairn", 0);
    assert_true(subject_find(NULL, &subject, &error));
    assert_string_equal(subject.path, "new.2.cairn");
    assert_string_equal(subject.name, "new.2.cairn");
    assert_int_equal(chdir(".."), 0);
}

static void test_words(void **state) {
    (void)state;
    struct subject subject;
    struct error error;
    assert_true(subject_find("one/a.1.cairn", &subject, &error));
    assert_string_equal(subject.path, "one/a.1.cairn");
    assert_string_equal(subject.name, "one/a.1.cairn");
    check_refused("one/missing.cairn", "No such file");
    check_refused("one/a.1.cairn/b", "Not a directory");
    check_refused("no-such-program-runs", "no such file");
    check_refused("999999999", "999999999");
}

static void test_snapshots(void **state) {
    (void)state;
    char with[] = "run.cairn@peak", without[] = "run.cairn", bare[] = "@peak", open_end[] = "run@",
         file[] = "a@b.cairn";
    assert_string_equal(subject_cut_snapshot(with), "peak");
    assert_string_equal(with, "run.cairn");
    assert_null(subject_cut_snapshot(without));
    assert_null(subject_cut_snapshot(bare));
    assert_null(subject_cut_snapshot(open_end));
    make_recording(file);
    assert_null(subject_cut_snapshot(file));
}

// A single recording is entered by its own process alone, a run by one that its index has.
static void test_process_of_it(void **state) {
    (void)state;
    struct subject subject;
    struct error error = {""};
    assert_true(subject_find("one/a.1.cairn", &subject, &error));
    assert_true(subject_enter(&subject, "sample", &error));
    assert_string_equal(subject.path, "one/a.1.cairn");
    assert_false(subject_enter(&subject, "another", &error));
    assert_non_null(strstr(error.text, "another"));
    assert_true(subject_find("two", &subject, &error));
    assert_false(subject_enter(&subject, "another", &error));
    assert_true(subject.is_run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directories),   cmocka_unit_test(test_newest),
        cmocka_unit_test(test_words),         cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_process_of_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
