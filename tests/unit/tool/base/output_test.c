// SPDX-License-Identifier: Apache-2.0
#include "tool/base/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/cairn-output.XXXXXX";

static int enter(void **state) {
    (void)state;
    return !mkdtemp(directory) || chdir(directory);
}

static int leave(void **state) {
    (void)state;
    return unlink("out") || chdir("/") || rmdir(directory);
}

static void check_content(const char *expected) {
    char text[32] = "";
    FILE *file = fopen("out", "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), strlen(expected));
    fclose(file);
    assert_string_equal(text, expected);
}

static void write_text(const char *text, bool can_replace) {
    struct output output;
    assert_true(output_open("out", can_replace, &output, NULL));
    fputs(text, output.file);
    assert_true(output_commit(&output, NULL));
}

static void test_appears_when_complete(void **state) {
    (void)state;
    struct output output;
    assert_true(output_open("out", false, &output, NULL));
    fputs("half", output.file);
    assert_int_equal(access("out", F_OK), -1);
    output_cancel(&output);
    assert_int_equal(access("out", F_OK), -1);
    write_text("whole", false);
    check_content("whole");
}

static void test_never_overwrites(void **state) {
    (void)state;
    struct output output;
    struct error error;
    assert_false(output_open("out", false, &output, &error));
    assert_string_equal(error.text, "out: exists; --force writes over it");
    output_cancel(&output);
    write_text("new", true);
    check_content("new");
    // it may appear while the output is being written
    assert_int_equal(rename("out", "kept"), 0);
    assert_true(output_open("out", false, &output, NULL));
    fputs("mine", output.file);
    assert_int_equal(rename("kept", "out"), 0);
    assert_false(output_commit(&output, &error));
    check_content("new");
}

static void test_cannot_write(void **state) {
    (void)state;
    struct output output;
    struct error error;
    assert_true(output_open("/dev/full", false, &output, NULL));
    fputs("x", output.file);
    assert_false(output_commit(&output, &error));
    assert_string_equal(error.text, "/dev/full: cannot write: No space left on device");
    assert_false(output_open("/", false, &output, &error));
    assert_false(output_open("no/out", false, &output, &error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appears_when_complete),
        cmocka_unit_test(test_never_overwrites),
        cmocka_unit_test(test_cannot_write),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
