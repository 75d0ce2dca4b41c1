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

#include "tool/symbol/internal_frames.h"

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define PROGRAM "/usr/bin/program"

static const struct {
    const char *function;
    const char *module;
    enum internal_kind kind;
} rows[] = {
    {"malloc", LIBC, INTERNAL_ALLOCATOR},
    {"malloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"malloc", NULL, INTERNAL_ALLOCATOR},
    {"malloc_statistics", PROGRAM, INTERNAL_NONE},
    {"__GI___libc_malloc", LIBC, INTERNAL_ALLOCATOR},
    {"operator new", PROGRAM, INTERNAL_ALLOCATOR},
    {"operator new[]", PROGRAM, INTERNAL_ALLOCATOR},
    {"operator delete[]", PROGRAM, INTERNAL_ALLOCATOR},
    {"Pool::operator new", PROGRAM, INTERNAL_NONE},
    {"strdup", LIBC, INTERNAL_NONE},
    {"xmalloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"g_malloc0_n", "/usr/lib/libglib-2.0.so.0", INTERNAL_ALLOCATOR},
    {"zmalloc_usable", PROGRAM, INTERNAL_ALLOCATOR},
    {"mosquitto__calloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"mosquitto__malloc_all", PROGRAM, INTERNAL_NONE},
    {"try_malloc", PROGRAM, INTERNAL_NONE},
    {"sqlite3MemMalloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"pcache1Alloc", PROGRAM, INTERNAL_NONE},
    {"anything", "/usr/lib/libjemalloc.so.2", INTERNAL_ALLOCATOR},
    {NULL, "/usr/lib/libtcmalloc_minimal.so.4", INTERNAL_ALLOCATOR},
    {NULL, "/usr/lib/libjemallocator.so", INTERNAL_NONE},
    {NULL, LIBC, INTERNAL_NONE},
    {NULL, NULL, INTERNAL_NONE},
    // Rust
    {"<cairn::dhat::Alloc as core::alloc::global::GlobalAlloc>::alloc", PROGRAM,
     INTERNAL_ALLOCATOR},
    {"cairn::library::<impl core::alloc::global::GlobalAlloc for "
     "cairn::Alloc<std::alloc::System>>::alloc",
     PROGRAM, INTERNAL_ALLOCATOR},
    {"<dhat::Alloc as core::alloc::global::GlobalAlloc>::dealloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"cairn::Region::new", PROGRAM, INTERNAL_NONE},
    // C++
    {"std::vector<int>::push_back", PROGRAM, INTERNAL_NONE},
    {"std::vector<int>::_M_realloc_insert<int const&>", PROGRAM, INTERNAL_LIBRARY},
    {"std::_Vector_base<int>::_M_allocate", PROGRAM, INTERNAL_LIBRARY},
    {"std::__shared_count<2>::__shared_count<Foo>", PROGRAM, INTERNAL_LIBRARY},
    {"std::allocator<int>::allocate", PROGRAM, INTERNAL_LIBRARY},
    {"std::allocator_traits<std::allocator<int>>::allocate", PROGRAM, INTERNAL_LIBRARY},
    {"__gnu_cxx::new_allocator<int>::allocate", PROGRAM, INTERNAL_LIBRARY},
    {"std::string::_M_create", PROGRAM, INTERNAL_LIBRARY},
    {"std::string::append", PROGRAM, INTERNAL_NONE},
    {"std::string::basic_string<std::allocator<char>>", PROGRAM, INTERNAL_LIBRARY},
    {"std::basic_string<char16_t>::basic_string", PROGRAM, INTERNAL_LIBRARY},
    {"app::basic_string", PROGRAM, INTERNAL_NONE},
    {"std::make_shared<Foo>", PROGRAM, INTERNAL_NONE},
    {"app::load", PROGRAM, INTERNAL_NONE},
    {"app::my_std::_x", PROGRAM, INTERNAL_NONE},
    {"std::shared_ptr<Foo>::shared_ptr<std::allocator<Foo>>", PROGRAM, INTERNAL_LIBRARY},
    // servers, virtual machines
    {"ngx_palloc_large", PROGRAM, INTERNAL_ALLOCATOR},
    {"ngx_http_create_request", PROGRAM, INTERNAL_NONE},
    {"apr_palloc", "/usr/lib/libapr-1.so.0", INTERNAL_ALLOCATOR},
    {"allocator_alloc", PROGRAM, INTERNAL_NONE},
    {"os::malloc", "/usr/lib/jvm/lib/server/libjvm.so", INTERNAL_ALLOCATOR},
    {"os::malloc", PROGRAM, INTERNAL_NONE},
    {"AllocateHeap", "/usr/lib/jvm/lib/server/libjvm.so", INTERNAL_ALLOCATOR},
    {"ResourceObj::operator new", "/usr/lib/jvm/lib/server/libjvm.so", INTERNAL_ALLOCATOR},
    {"v8::internal::Heap::SetUp", PROGRAM, INTERNAL_LIBRARY},
    {"Builtins_InterpreterEntryTrampoline", PROGRAM, INTERNAL_LIBRARY},
    {"v8::Script::Compile", PROGRAM, INTERNAL_PYTHON},
    {"v9::Script::Compile", PROGRAM, INTERNAL_NONE},
    // Rust
    {"alloc::slice::<impl [T]>::to_vec_in", PROGRAM, INTERNAL_LIBRARY},
    {"alloc::slice::<impl [T]>::to_vec", PROGRAM, INTERNAL_NONE},
    {"hashbrown::raw::RawTable<T,A>::reserve_rehash", PROGRAM, INTERNAL_LIBRARY},
    {"hashbrown::map::HashMap<K,V,S,A>::reserve", PROGRAM, INTERNAL_LIBRARY},
    {"<hashbrown::map::HashMap<K,V,S,A> as core::iter::Extend<(K,V)>>::extend", PROGRAM,
     INTERNAL_LIBRARY},
    {"__rust_alloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"__rdl_alloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"alloc::alloc::exchange_malloc", PROGRAM, INTERNAL_ALLOCATOR},
    {"<alloc::alloc::Global as core::alloc::Allocator>::allocate", PROGRAM, INTERNAL_ALLOCATOR},
    {"alloc::raw_vec::RawVec<T,A>::grow_one", PROGRAM, INTERNAL_LIBRARY},
    {"core::ops::function::FnOnce::call_once", PROGRAM, INTERNAL_LIBRARY},
    {"alloc::vec::Vec<T,A>::push", PROGRAM, INTERNAL_NONE},
    {"alloc::vec::Vec<T,A>::with_capacity_in", PROGRAM, INTERNAL_LIBRARY},
    {"alloc::vec::Vec<T>::with_capacity", PROGRAM, INTERNAL_NONE},
    {"alloc::boxed::Box<T,A>::try_new_uninit_in", PROGRAM, INTERNAL_LIBRARY},
    {"alloc::boxed::Box<T>::new", PROGRAM, INTERNAL_NONE},
    {"run_mod", "/usr/bin/python3.11", INTERNAL_START},
    {"run_mod", PROGRAM, INTERNAL_NONE},
    {"<app::Store as core::clone::Clone>::clone", PROGRAM, INTERNAL_NONE},
    {"<app::Read as core::future::future::Future>::poll", PROGRAM, INTERNAL_NONE},
    {"<fn() as core::ops::function::FnOnce<()>>::call_once", PROGRAM, INTERNAL_LIBRARY},
    {"<T as core::convert::Into<U>>::into", PROGRAM, INTERNAL_LIBRARY},
    {"std::rt::lang_start::{{closure}}", PROGRAM, INTERNAL_START},
    {"std::thread::lifecycle::spawn_unchecked::{{closure}}", PROGRAM, INTERNAL_START},
    {"<std::sys::thread::unix::Thread>::new::thread_start", PROGRAM, INTERNAL_START},
    {"tokio::runtime::task::core::Core<T,S>::poll::{{closure}}", PROGRAM, INTERNAL_LIBRARY},
    {"<tokio::time::timeout::Timeout<T> as core::future::future::Future>::poll", PROGRAM,
     INTERNAL_LIBRARY},
    {"tokio::runtime::builder::Builder::build", PROGRAM, INTERNAL_NONE},
    {"tokio::task::spawn::spawn", PROGRAM, INTERNAL_NONE},
    {"tokio::sync::mpsc::bounded::channel", PROGRAM, INTERNAL_NONE},
    {"async_task::raw::RawTask<F,T,S>::run", PROGRAM, INTERNAL_LIBRARY},
    {"<futures_util::stream::stream::next::Next<St> as core::future::future::Future>::poll",
     PROGRAM, INTERNAL_LIBRARY},
    {"async fn app::serve", PROGRAM, INTERNAL_NONE},
    // Start of processes and threads
    {"_start", PROGRAM, INTERNAL_START},
    {"__libc_start_main_impl", LIBC, INTERNAL_START},
    {"__libc_start_call_main", LIBC, INTERNAL_START},
    {"start_thread", LIBC, INTERNAL_START},
    {"start_thread", "/lib/libc-2.31.so", INTERNAL_START},
    {"start_thread", "/lib/libpthread.so.0", INTERNAL_START},
    {"start_thread", PROGRAM, INTERNAL_NONE},
    {"clone", "/usr/lib/libcurl.so.4", INTERNAL_NONE},
    {"clone", PROGRAM, INTERNAL_NONE},
    {"clone3", LIBC, INTERNAL_START},
    {"uv_run", PROGRAM, INTERNAL_START},
    {"event_base_loop", "/usr/lib/libevent-2.1.so.7", INTERNAL_START},
    {"event_base_loop", PROGRAM, INTERNAL_NONE},
    {"g_main_loop_run", "/usr/lib/libglib-2.0.so.0", INTERNAL_START},
    {"main", PROGRAM, INTERNAL_NONE},
    // code of Python has its file for a module
    {"TestCase.run", "/usr/lib/python3.11/unittest/case.py", INTERNAL_START},
    {"TestCase.run", "/app/myunittest/case.py", INTERNAL_NONE},
    {"TestCase.run", "/app/case.py", INTERNAL_NONE},
    {"pytest_runtest", "/v/site-packages/_pytest/runner.py", INTERNAL_START},
    {"test_x", "/app/my_pytest/runner.py", INTERNAL_NONE},
    {"Thread.run", "/usr/lib/python3.11/threading.py", INTERNAL_START},
    {"Thread.run", "/app/mythreading.py", INTERNAL_NONE},
    {"convert_exception_to_response.<locals>.inner", "/v/django/core/handlers/exception.py",
     INTERNAL_LIBRARY},
    {"catalog", "/app/shop/views.py", INTERNAL_NONE},
};

static void kinds_are_as_written_down(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum internal_kind kind = internal_kind_of(rows[i].function, rows[i].module);
        if (kind != rows[i].kind) print_error("%s\n", rows[i].function ? rows[i].function : "-");
        assert_int_equal(kind, rows[i].kind);
        assert_int_equal(internal_is_hidden(rows[i].function, rows[i].module),
                         rows[i].kind != INTERNAL_NONE);
    }
}

static void first_shown_skips_internal(void **state) {
    (void)state;
    const struct internal_frame stack[] = {{"operator new", PROGRAM},
                                           {"std::_Vector_base<int>::_M_allocate", PROGRAM},
                                           {"load", PROGRAM},
                                           {"main", PROGRAM},
                                           {"_start", PROGRAM}};
    assert_int_equal(internal_first_shown(stack, 5), 2);
    assert_int_equal(internal_first_shown(stack + 2, 3), 0);
}

static void stack_of_internal_keeps_one_frame(void **state) {
    (void)state;
    const struct internal_frame start[] = {
        {"malloc", LIBC}, {"start_thread", LIBC}, {"clone3", LIBC}};
    assert_int_equal(internal_first_shown(start, 3), 1);
    const struct internal_frame allocators[] = {{"malloc", LIBC}, {"xmalloc", PROGRAM}};
    assert_int_equal(internal_first_shown(allocators, 2), 1);
    assert_int_equal(internal_first_shown(allocators, 1), 0);
    assert_int_equal(internal_first_shown(NULL, 0), 0);
}

static void check_file(const char *text, const char *problem) {
    char path[] = "/tmp/cairn-internal-XXXXXX";
    struct error error = {""};
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    bool is_loaded = internal_load(path, &error);
    unlink(path);
    assert_int_equal(is_loaded, problem == NULL);
    if (problem && !strstr(error.text, problem)) fail_msg("%s", error.text);
}

static void libraries_lie_in_programs(void **state) {
    (void)state;
    assert_true(internal_is_library("std::vector<int>::push_back", NULL));
    assert_true(internal_is_library("operator+<char>", "/usr/include/c++/12/bits/basic_string.h"));
    assert_true(internal_is_library("<alloc::vec::Vec<T> as core::clone::Clone>::clone", NULL));
    assert_true(
        internal_is_library("push", "/rustc/4eb161250e340c8f/library/alloc/src/vec/mod.rs"));
    assert_true(internal_is_library("parse", "/home/me/.cargo/registry/src/serde/lib.rs"));
    assert_false(internal_is_library("Server::parse", "/home/me/server.cc"));
    assert_false(internal_is_library("standard::load", "server.cc"));
    assert_false(internal_is_library("main", NULL));
    assert_false(internal_is_library(NULL, NULL));
    assert_true(internal_is_runtime("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"));
    assert_true(internal_is_runtime("/usr/lib/llvm/libc++.so.1"));
    assert_true(internal_is_runtime(LIBC));
    assert_false(internal_is_runtime("/usr/lib/libcurl.so.4"));
    assert_false(internal_is_runtime(PROGRAM));
    assert_false(internal_is_runtime(NULL));
}

// Last, since rules stay.
static void own_rules_come_first(void **state) {
    (void)state;
    check_file("# pools\nallocator pool_*\n\n  library *::detail::*  \nstart *_loop in libapp\n"
               "show xmalloc\nallocator operator make\nlibrary * in libinside\n",
               NULL);
    assert_int_equal(internal_kind_of("pool_get", PROGRAM), INTERNAL_ALLOCATOR);
    assert_int_equal(internal_kind_of("my_pool_get", PROGRAM), INTERNAL_NONE);
    assert_int_equal(internal_kind_of("app::detail::run", PROGRAM), INTERNAL_LIBRARY);
    assert_int_equal(internal_kind_of("main_loop", PROGRAM), INTERNAL_NONE);
    assert_int_equal(internal_kind_of("main_loop", "/usr/lib/libapp.so.1"), INTERNAL_START);
    assert_int_equal(internal_kind_of("xmalloc", PROGRAM), INTERNAL_NONE);
    assert_int_equal(internal_kind_of("operator make", PROGRAM), INTERNAL_ALLOCATOR);
    assert_int_equal(internal_kind_of(NULL, "/usr/lib/libinside.so"), INTERNAL_LIBRARY);
    check_file("hide foo\n", ":1: \"hide\" is not");
    check_file("library a\nlibrary\n", ":2: no name");
    assert_false(internal_load("/nonexistent/rules", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_as_written_down),
        cmocka_unit_test(first_shown_skips_internal),
        cmocka_unit_test(stack_of_internal_keeps_one_frame),
        cmocka_unit_test(libraries_lie_in_programs),
        cmocka_unit_test(own_rules_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
