// SPDX-License-Identifier: Apache-2.0
#include "format/run_mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 256 };
static const char library[] = "libcairn.so";

static enum cairn_mark read_path(const char *path, uint64_t *number) {
    return cairn_mark_read(path, strlen(path), number);
}

static void test_numbers_come_back(void **state) {
    (void)state;
    static const char *const directories[] = {"/", "/opt/lib/", "/opt/lib./", "/a..b/c.d/", ""};
    static const uint64_t numbers[] = {0,           1, 0x8000000000, 0xffffffffff, 0xaaaaaaaaaa,
                                       0x1234567890};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            char path[PATH_BYTES], digits[CAIRN_MARK_BYTES];
            uint64_t number = ~UINT64_C(0);
            cairn_mark_write(digits, numbers[k], CAIRN_MARK_RUN_BITS);
            snprintf(path, sizeof path, "%s%s%s", directories[i], digits, library);
            bool is_absolute = *directories[i] == '/';
            assert_int_equal(read_path(path, &number) == CAIRN_MARK_RUN, is_absolute);
            if (is_absolute) assert_int_equal(number, numbers[k]);
        }
    }
}

static void test_marked_path_is_the_same_file(void **state) {
    (void)state;
    char path[PATH_BYTES], digits[CAIRN_MARK_BYTES];
    cairn_mark_write(digits, 0x5a5a5a5a5a, CAIRN_MARK_RUN_BITS);
    snprintf(path, sizeof path, "/proc/self/%sstatus", digits);
    assert_int_equal(access(path, R_OK), 0);
}

static void test_alone(void **state) {
    (void)state;
    char path[PATH_BYTES], digits[CAIRN_MARK_BYTES];
    uint64_t number;
    cairn_mark_write(digits, 0, CAIRN_MARK_ALONE_BITS);
    snprintf(path, sizeof path, "/usr/lib/%s%s", digits, library);
    assert_int_equal(read_path(path, &number), CAIRN_MARK_ALONE);
}

static void test_paths_of_people_have_none(void **state) {
    (void)state;
    static const char *const paths[] = {
        "libcairn.so",
        "./libcairn.so",
        "/libcairn.so",
        "//libcairn.so",
        "/a/./libcairn.so",
        "/a//libcairn.so",
        "../libcairn.so",
        "/a/../b/libcairn.so",
        "/.../libcairn.so",
        "/a/../../../libcairn.so",
        "",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        uint64_t number;
        assert_int_equal(read_path(paths[i], &number), CAIRN_MARK_NONE);
    }
}

static void test_own_entry_is_found(void **state) {
    (void)state;
    static const struct {
        const char *list, *entry;
    } lists[] = {
        {"libcairn.so", "libcairn.so"},
        {"/a/libfirst.so:/b/libcairn-cxx.so /c/libcairn.so", "/b/libcairn-cxx.so"},
        {"/a/notlibcairn.so: :/b//libcairn.so:/c", "/b//libcairn.so"},
        {"/a/libcairn.so.1:/b/libjemalloc.so", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t length = 0;
        const char *entry = cairn_own_entry(lists[i].list, &length), *wanted = lists[i].entry;
        assert_int_equal(entry != NULL, wanted != NULL);
        if (!entry || !wanted) continue;
        assert_int_equal(length, strlen(wanted));
        assert_memory_equal(entry, wanted, length);
    }
}

static void test_socket_has_all_digits(void **state) {
    (void)state;
    char name[CAIRN_MARK_SOCKET_BYTES];
    cairn_mark_socket(name, 0x12ab);
    assert_string_equal(name, "cairn-00000012ab");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_come_back),
        cmocka_unit_test(test_marked_path_is_the_same_file),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_paths_of_people_have_none),
        cmocka_unit_test(test_own_entry_is_found),
        cmocka_unit_test(test_socket_has_all_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
