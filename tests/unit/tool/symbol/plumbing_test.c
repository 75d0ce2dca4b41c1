// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/symbol/plumbing.h"

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define PROGRAM "/usr/bin/program"

static const struct {
    const char *function;
    const char *module;
    enum plumbing_kind kind;
} rows[] = {
    {"malloc", LIBC, PLUMBING_ALLOCATOR},
    {"malloc", PROGRAM, PLUMBING_ALLOCATOR},
    {"malloc", NULL, PLUMBING_ALLOCATOR},
    {"malloc_statistics", PROGRAM, PLUMBING_NONE},
    {"__GI___libc_malloc", LIBC, PLUMBING_ALLOCATOR},
    {"operator new", PROGRAM, PLUMBING_ALLOCATOR},
    {"operator new[]", PROGRAM, PLUMBING_ALLOCATOR},
    {"operator delete[]", PROGRAM, PLUMBING_ALLOCATOR},
    {"Pool::operator new", PROGRAM, PLUMBING_NONE},
    {"strdup", LIBC, PLUMBING_NONE},
    {"xmalloc", PROGRAM, PLUMBING_ALLOCATOR},
    {"g_malloc0_n", "/usr/lib/libglib-2.0.so.0", PLUMBING_ALLOCATOR},
    {"zmalloc_usable", PROGRAM, PLUMBING_ALLOCATOR},
    {"sqlite3MemMalloc", PROGRAM, PLUMBING_ALLOCATOR},
    {"pcache1Alloc", PROGRAM, PLUMBING_NONE},
    {"anything", "/usr/lib/libjemalloc.so.2", PLUMBING_ALLOCATOR},
    {NULL, "/usr/lib/libtcmalloc_minimal.so.4", PLUMBING_ALLOCATOR},
    {NULL, "/usr/lib/libjemallocator.so", PLUMBING_NONE},
    {NULL, LIBC, PLUMBING_NONE},
    {NULL, NULL, PLUMBING_NONE},
    // C++
    {"std::vector<int>::push_back", PROGRAM, PLUMBING_NONE},
    {"std::vector<int>::_M_realloc_insert<int const&>", PROGRAM, PLUMBING_LIBRARY},
    {"std::_Vector_base<int>::_M_allocate", PROGRAM, PLUMBING_LIBRARY},
    {"std::__shared_count<2>::__shared_count<Foo>", PROGRAM, PLUMBING_LIBRARY},
    {"std::allocator<int>::allocate", PROGRAM, PLUMBING_LIBRARY},
    {"std::allocator_traits<std::allocator<int>>::allocate", PROGRAM, PLUMBING_LIBRARY},
    {"__gnu_cxx::new_allocator<int>::allocate", PROGRAM, PLUMBING_LIBRARY},
    {"std::string::_M_create", PROGRAM, PLUMBING_LIBRARY},
    {"std::string::append", PROGRAM, PLUMBING_NONE},
    {"std::string::basic_string<std::allocator<char>>", PROGRAM, PLUMBING_LIBRARY},
    {"std::basic_string<char16_t>::basic_string", PROGRAM, PLUMBING_LIBRARY},
    {"app::basic_string", PROGRAM, PLUMBING_NONE},
    {"std::make_shared<Foo>", PROGRAM, PLUMBING_NONE},
    {"app::load", PROGRAM, PLUMBING_NONE},
    {"app::my_std::_x", PROGRAM, PLUMBING_NONE},
    // Rust
    {"__rust_alloc", PROGRAM, PLUMBING_ALLOCATOR},
    {"__rdl_alloc", PROGRAM, PLUMBING_ALLOCATOR},
    {"alloc::alloc::exchange_malloc", PROGRAM, PLUMBING_ALLOCATOR},
    {"<alloc::alloc::Global as core::alloc::Allocator>::allocate", PROGRAM, PLUMBING_ALLOCATOR},
    {"alloc::raw_vec::RawVec<T,A>::grow_one", PROGRAM, PLUMBING_LIBRARY},
    {"core::ops::function::FnOnce::call_once", PROGRAM, PLUMBING_LIBRARY},
    {"alloc::vec::Vec<T,A>::push", PROGRAM, PLUMBING_NONE},
    {"alloc::vec::Vec<T,A>::with_capacity_in", PROGRAM, PLUMBING_LIBRARY},
    {"alloc::vec::Vec<T>::with_capacity", PROGRAM, PLUMBING_NONE},
    {"alloc::boxed::Box<T,A>::try_new_uninit_in", PROGRAM, PLUMBING_LIBRARY},
    {"alloc::boxed::Box<T>::new", PROGRAM, PLUMBING_NONE},
    {"run_mod", "/usr/bin/python3.11", PLUMBING_START},
    {"run_mod", PROGRAM, PLUMBING_NONE},
    {"<app::Store as core::clone::Clone>::clone", PROGRAM, PLUMBING_NONE},
    {"<T as core::convert::Into<U>>::into", PROGRAM, PLUMBING_LIBRARY},
    {"std::rt::lang_start::{{closure}}", PROGRAM, PLUMBING_START},
    // Start of processes and threads
    {"_start", PROGRAM, PLUMBING_START},
    {"__libc_start_main_impl", LIBC, PLUMBING_START},
    {"__libc_start_call_main", LIBC, PLUMBING_START},
    {"start_thread", LIBC, PLUMBING_START},
    {"start_thread", "/lib/libc-2.31.so", PLUMBING_START},
    {"start_thread", "/lib/libpthread.so.0", PLUMBING_START},
    {"start_thread", PROGRAM, PLUMBING_NONE},
    {"clone", "/usr/lib/libcurl.so.4", PLUMBING_NONE},
    {"clone", PROGRAM, PLUMBING_NONE},
    {"clone3", LIBC, PLUMBING_START},
    {"main", PROGRAM, PLUMBING_NONE},
};

static void kinds_are_as_written_down(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum plumbing_kind kind = plumbing_kind_of(rows[i].function, rows[i].module);
        if (kind != rows[i].kind) print_error("%s\n", rows[i].function ? rows[i].function : "-");
        assert_int_equal(kind, rows[i].kind);
        assert_int_equal(plumbing_is_hidden(rows[i].function, rows[i].module),
                         rows[i].kind != PLUMBING_NONE);
    }
}

static void first_shown_skips_plumbing(void **state) {
    (void)state;
    const struct plumbing_frame stack[] = {{"operator new", PROGRAM},
                                           {"std::_Vector_base<int>::_M_allocate", PROGRAM},
                                           {"load", PROGRAM},
                                           {"main", PROGRAM},
                                           {"_start", PROGRAM}};
    assert_int_equal(plumbing_first_shown(stack, 5), 2);
    assert_int_equal(plumbing_first_shown(stack + 2, 3), 0);
}

static void stack_of_plumbing_keeps_one_frame(void **state) {
    (void)state;
    const struct plumbing_frame start[] = {
        {"malloc", LIBC}, {"start_thread", LIBC}, {"clone3", LIBC}};
    assert_int_equal(plumbing_first_shown(start, 3), 1);
    const struct plumbing_frame allocators[] = {{"malloc", LIBC}, {"xmalloc", PROGRAM}};
    assert_int_equal(plumbing_first_shown(allocators, 2), 1);
    assert_int_equal(plumbing_first_shown(allocators, 1), 0);
    assert_int_equal(plumbing_first_shown(NULL, 0), 0);
}

static void check_file(const char *text, const char *problem) {
    char path[] = "/tmp/cairn-plumbing-XXXXXX";
    struct error error = {""};
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    bool is_loaded = plumbing_load(path, &error);
    unlink(path);
    assert_int_equal(is_loaded, problem == NULL);
    if (problem && !strstr(error.text, problem)) fail_msg("%s", error.text);
}

// Last, since rules stay.
static void own_rules_come_first(void **state) {
    (void)state;
    check_file("# pools\nallocator pool_*\n\n  library *::detail::*  \nstart *_loop in libapp\n"
               "show xmalloc\nallocator operator make\nlibrary * in libinside\n",
               NULL);
    assert_int_equal(plumbing_kind_of("pool_get", PROGRAM), PLUMBING_ALLOCATOR);
    assert_int_equal(plumbing_kind_of("my_pool_get", PROGRAM), PLUMBING_NONE);
    assert_int_equal(plumbing_kind_of("app::detail::run", PROGRAM), PLUMBING_LIBRARY);
    assert_int_equal(plumbing_kind_of("main_loop", PROGRAM), PLUMBING_NONE);
    assert_int_equal(plumbing_kind_of("main_loop", "/usr/lib/libapp.so.1"), PLUMBING_START);
    assert_int_equal(plumbing_kind_of("xmalloc", PROGRAM), PLUMBING_NONE);
    assert_int_equal(plumbing_kind_of("operator make", PROGRAM), PLUMBING_ALLOCATOR);
    assert_int_equal(plumbing_kind_of(NULL, "/usr/lib/libinside.so"), PLUMBING_LIBRARY);
    check_file("hide foo\n", ":1: \"hide\" is not");
    check_file("library a\nlibrary\n", ":2: no name");
    assert_false(plumbing_load("/nonexistent/rules", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_as_written_down),
        cmocka_unit_test(first_shown_skips_plumbing),
        cmocka_unit_test(stack_of_plumbing_keeps_one_frame),
        cmocka_unit_test(own_rules_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
