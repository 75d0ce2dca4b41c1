// SPDX-License-Identifier: Apache-2.0
#include "tool/render/shorten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *name, size_t columns, const char *expected) {
    char text[256];
    strcpy(text, name);
    shorten_function(text, columns);
    assert_string_equal(text, expected);
}

static void test_shorten(void **state) {
    (void)state;
    const char *insert = "std::vector<std::pair<int, long>>::insert<char const*>";
    check(insert, 80, insert);
    check(insert, 40, "std::vector<…>::insert<…>");
    check(insert, 24, "std::vector<…>::insert");
    check(insert, 20, "vector<…>::insert");
    check(insert, 12, "…::insert");
    check("a::b::c::function", 14, "…::c::function");
    check("no_namespace_at_all_here", 10, "no_namespace_at_all_here");
}

// Angle brackets that are no template arguments.
static void test_operators(void **state) {
    (void)state;
    check("ns::Stream::operator<<", 16, "…::operator<<");
    check("ns::Pointer<long long>::operator->", 26, "ns::Pointer<…>::operator->");
    check("a::operator<", 11, "a::operator<");
    check("<impl core::fmt::Debug for alloc::vec::Vec<T>>::fmt", 20, "…::fmt");
}

static void test_paths(void **state) {
    (void)state;
    char path[64] = "/home/me/projects/thing/source.cc";
    shorten_path(path, 33);
    assert_string_equal(path, "/home/me/projects/thing/source.cc");
    shorten_path(path, 20);
    assert_string_equal(path, "…/thing/source.cc");
    shorten_path(path, 5);
    assert_string_equal(path, "…/source.cc");
    shorten_path(path, 5);
    assert_string_equal(path, "…/source.cc");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shorten),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
