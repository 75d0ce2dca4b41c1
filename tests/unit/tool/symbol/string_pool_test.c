// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/symbol/string_pool.h"

#define TEXT_COUNT 20000  // the table grows several times

static struct string_pool *store;

static int open_store(void **state) {
    (void)state;
    store = string_pool_open();
    return store ? 0 : -1;
}

static int close_store(void **state) {
    (void)state;
    string_pool_close(store);
    return 0;
}

static void equal_texts_are_one(void **state) {
    (void)state;
    const char **first = calloc(TEXT_COUNT, sizeof *first);
    char text[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TEXT_COUNT; i++) {
            int length = snprintf(text, sizeof text, "text number %d", i);
            const char *found = string_pool_intern(store, text, (size_t)length);
            assert_string_equal(found, text);
            if (round) assert_ptr_equal(found, first[i]);
            first[i] = found;
        }
    }
    free(first);
}

static void length_counts_not_the_terminator(void **state) {
    (void)state;
    assert_string_equal(string_pool_intern(store, "abcdefghijk", 3), "abc");
    assert_ptr_equal(string_pool_intern(store, "abcdefghijk", 3),
                     string_pool_intern(store, "abc", 3));
    assert_ptr_not_equal(string_pool_intern(store, "abcd", 4), string_pool_intern(store, "abc", 3));
    assert_string_equal(string_pool_intern(store, "", 0), "");
}

static void readable_names_are_remembered(void **state) {
    (void)state;
    const char *name = string_pool_readable(store, "_ZN3Foo3barEv");
    assert_string_equal(name, "Foo::bar");
    assert_ptr_equal(string_pool_readable(store, "_ZN3Foo3barEv"), name);
    assert_ptr_equal(string_pool_readable(store, "_ZN3Foo3barEv.part.0"), name);
}

static void paths_are_joined(void **state) {
    (void)state;
    assert_string_equal(string_pool_path(store, "/a", "b.c"), "/a/b.c");
    assert_string_equal(string_pool_path(store, "/a", "/b.c"), "/b.c");
    assert_string_equal(string_pool_path(store, "", "b.c"), "b.c");
    assert_string_equal(string_pool_path(store, NULL, "b.c"), "b.c");
    assert_string_equal(string_pool_path(store, "/a/b", "../c.c"), "/a/b/../c.c");
}

static void blocks_are_zeroed_aligned_and_may_be_large(void **state) {
    (void)state;
    for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 + 1) {
        char *block = string_pool_alloc(store, bytes);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i += 97) assert_int_equal(block[i], 0);
        memset(block, 0xff, bytes);
    }
    assert_null(string_pool_alloc(store, SIZE_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_are_one),
        cmocka_unit_test(length_counts_not_the_terminator),
        cmocka_unit_test(readable_names_are_remembered),
        cmocka_unit_test(paths_are_joined),
        cmocka_unit_test(blocks_are_zeroed_aligned_and_may_be_large),
    };
    return cmocka_run_group_tests(tests, open_store, close_store);
}
