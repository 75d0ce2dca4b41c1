// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/import/import.h"

static void check(const char *function, const char *file, const char *wanted) {
    char *name = import_name(function, file);
    assert_non_null(name);
    assert_string_equal(name, wanted);
    free(name);
}

static void test_parameters_and_return_types(void **state) {
    (void)state;
    check("main", NULL, "main");
    check("Table::load(int)", NULL, "Table::load");
    check("Table::size() const", NULL, "Table::size");
    check("void std::_Construct<A, B&>(A*, B&)", NULL, "std::_Construct<A, B&>");
    check("std::pair<int, A> std::map<int, A>::emplace<int&>(int&)", NULL,
          "std::map<int, A>::emplace<int&>");
    check("A& std::deque<A>::emplace_back<A>(A&&)", NULL, "std::deque<A>::emplace_back<A>");
    check("unsigned long* make<unsigned long>(int)", NULL, "make<unsigned long>");
    check("(anonymous namespace)::f(int)", NULL, "(anonymous namespace)::f");
    check("main::{lambda(int)#1}::operator()(int) const", NULL,
          "main::{lambda(int)#1}::operator()");
    check("void f<main::{lambda() -> int}>()", NULL, "f<main::{lambda() -> int}>");
    check("operator new(unsigned long)", NULL, "operator new");
    check("A::operator B<int>() const", NULL, "A::operator B<int>");
    check("std::ostream& std::operator<< <A>(std::ostream&, A)", NULL, "std::operator<< <A>");
}

static void test_other_languages(void **state) {
    (void)state;
    check("<T as core::convert::Into<U>>::into", NULL, "<T as core::convert::Into<U>>::into");
    check("alloc::vec::Vec<T,A>::push", NULL, "alloc::vec::Vec<T,A>::push");
    check("<module>", NULL, "<module>");
    check("small allocations", NULL, "small allocations");
    check("", NULL, "");
    check("runtime.(*mheap).alloc", NULL, "runtime.(*mheap).alloc");
}

static void test_bare_members(void **state) {
    (void)state;
    check("_M_allocate", "stl_vector.h", "std::vector<>::_M_allocate");
    check("allocate", "/usr/include/c++/12/bits/new_allocator.h",
          "std::__new_allocator<>::allocate");
    check("operator[]", "stl_map.h", "std::map<>::operator[]");
    check("std::vector<int>::resize(unsigned long)", "stl_vector.h", "std::vector<int>::resize");
    check("allocate", "pool.cc", "allocate");
    assert_string_equal(import_library_of("start_thread", "pthread_create.c"), "libc.so.6");
    assert_null(import_library_of("start_thread", "mine.c"));
    assert_null(import_library_of("_M_allocate", "stl_vector.h"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_and_return_types),
        cmocka_unit_test(test_other_languages),
        cmocka_unit_test(test_bare_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
