// SPDX-License-Identifier: Apache-2.0
#include "runtime/sink/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/format.h"

enum { DIRECTORY_MAX = 512, TEXT_MAX = 2048 };

static char directory[DIRECTORY_MAX];

static void check(const char *pattern, unsigned attempt, const char *expected) {
    char path[CAIRN_TEXT_PATH];
    if (pattern)
        setenv("CAIRN_OUTPUT", pattern, 1);
    else
        unsetenv("CAIRN_OUTPUT");
    place_path(path, sizeof path, attempt);
    assert_string_equal(path, expected);
}

static const char *text(const char *format, ...) {
    static char result[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result, sizeof result, format, arguments);
    va_end(arguments);
    return result;
}

// The name of this program, however it was built.
static const char *own_name(void) {
    static char path[DIRECTORY_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length] = 0;
    return strrchr(path, '/') + 1;
}

static void test_default(void **state) {
    (void)state;
    assert_non_null(strstr(own_name(), "place"));
    check(NULL, 0, text("%s/%s.%d.cairn", directory, own_name(), getpid()));
    check("", 0, text("%s/%s.%d.cairn", directory, own_name(), getpid()));
    check(NULL, 1, text("%s/%s.%d.1.cairn", directory, own_name(), getpid()));
}

static void test_templates(void **state) {
    (void)state;
    check("/x/y.cairn", 0, "/x/y.cairn");
    check("y", 0, text("%s/y", directory));
    check("/%p/%n-%p%n", 0, text("/%d/%s-%d%s", getpid(), own_name(), getpid(), own_name()));
    check("/a%", 0, "/a%");
    check("/a%q%%", 0, "/a%q%%");
    check("/dir/../z", 0, "/dir/../z");
}

static void test_attempts(void **state) {
    (void)state;
    check("/x/y.cairn", 1, "/x/y.1.cairn");
    check("/x/y.cairn", 999, "/x/y.999.cairn");
    check("/x/y.tar.gz", 2, "/x/y.tar.2.gz");
    check("/x.d/y", 3, "/x.d/y.3");
    check("/x/y.", 4, "/x/y.4.");
    check("/y", 5, "/y.5");
}

// One byte more than fits gives no path at all, in any of the parts.
static void test_too_long(void **state) {
    (void)state;
    char pattern[TEXT_MAX];
    memset(pattern, 'a', sizeof pattern);
    pattern[0] = '/';
    pattern[CAIRN_TEXT_PATH - 1] = 0;
    check(pattern, 0, pattern);
    check(pattern, 1, "");
    pattern[CAIRN_TEXT_PATH - 1] = 'a';
    pattern[CAIRN_TEXT_PATH] = 0;
    check(pattern, 0, "");
    pattern[CAIRN_TEXT_PATH - 3] = 0;
    check(pattern, 1, text("%s.1", pattern));
    check(pattern, 10, "");
    memcpy(pattern + CAIRN_TEXT_PATH - 4, "%p", 3);
    check(pattern, 0, getpid() > 999 ? "" : text("%.*s%d", CAIRN_TEXT_PATH - 4, pattern, getpid()));
}

// Each size of buffer, with a guard behind it.
static void test_small_buffers(void **state) {
    (void)state;
    setenv("CAIRN_OUTPUT", "/x/y.cairn", 1);
    for (size_t size = 1; size < 40; size++) {
        char *path = malloc(size);
        place_path(path, size, 7);
        assert_string_equal(path, size > strlen("/x/y.7.cairn") ? "/x/y.7.cairn" : "");
        free(path);
    }
}

// A working directory that was removed must not turn a relative path into one at the root.
static void test_no_working_directory(void **state) {
    (void)state;
    char path[CAIRN_TEXT_PATH], gone[] = "place-test.XXXXXX";
    assert_non_null(mkdtemp(gone));
    assert_int_equal(chdir(gone), 0);
    assert_int_equal(rmdir(text("../%s", gone)), 0);
    setenv("CAIRN_OUTPUT", "y.cairn", 1);
    place_path(path, sizeof path, 0);
    assert_int_equal(chdir(directory), 0);
    assert_string_equal(path, "");
}

static int setup(void **state) {
    (void)state;
    return getcwd(directory, sizeof directory) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),       cmocka_unit_test(test_templates),
        cmocka_unit_test(test_attempts),      cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_small_buffers), cmocka_unit_test(test_no_working_directory),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
