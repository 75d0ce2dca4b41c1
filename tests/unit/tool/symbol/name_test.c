// SPDX-License-Identifier: Apache-2.0
// Readable names of many mangled ones. Each row was written down from what the source says, not
// from what the code prints.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/symbol/name.h"
#include "tool/symbol/name_clean.h"

struct row {
    const char *from;
    const char *to;
};

static const struct row mangled[] = {
    // C, with what compilers and linkers hang on.
    {"main", "main"},
    {"", ""},
    {"_", "_"},
    {"@", "@"},
    {"malloc@@GLIBC_2.2.5", "malloc"},
    {"memcpy@GLIBC_2.14", "memcpy"},
    {"long_pow.part.0", "long_pow"},
    {"replace.lto_priv.0.cold", "replace"},
    {"scan.constprop.0.isra.0", "scan"},
    {"inner.1234", "inner"},
    {"main.walk.func2.1", "main.walk.func2.1"},
    {"main.walk.func2.1.3", "main.walk.func2.1.3"},
    {"compress/flate.init.0", "compress/flate.init.0"},
    {"main.init.1.func2", "main.init.1.func2"},
    {"init.0", "init"},
    {"main.function.3", "main.function"},
    {"runtime.asmcgocall.abi0", "runtime.asmcgocall"},
    {"helper.llvm.9876543210", "helper"},
    {"memcpy.resolver", "memcpy"},
    {"runtime.mallocgc", "runtime.mallocgc"},
    {"main.main", "main.main"},
    {".hidden", ".hidden"},
    // C++ without parameters and return types.
    {"_Znwm", "operator new"},
    {"_Znam", "operator new[]"},
    {"_ZdlPv", "operator delete"},
    {"_ZN3FooC1Ev", "Foo::Foo"},
    {"_ZN3FooC4Ev", "Foo::Foo"},
    {"_ZN3FooD0Ev", "Foo::~Foo"},
    {"_ZN3FoocvbEv", "Foo::operator bool"},
    {"_ZN3FooclEv", "Foo::operator()"},
    {"_ZN3FooixEm", "Foo::operator[]"},
    {"_ZN3FooltERKS_", "Foo::operator<"},
    {"_ZN3FoossERKS_", "Foo::operator<=>"},
    {"_ZN3FooptEv", "Foo::operator->"},
    {"_ZN3FoolsEi", "Foo::operator<<"},
    {"_ZNK3Foo3barEv", "Foo::bar"},
    {"_ZNKR3Foo3barEv", "Foo::bar"},
    {"_Z3fooIiET_S0_", "foo<int>"},
    {"_ZN12_GLOBAL__N_13fooEv", "(anon)::foo"},
    {"_ZN3Foo3barEv.part.0", "Foo::bar"},
    {"_ZN3Foo3barEv.constprop.0.isra.0", "Foo::bar"},
    {"_ZZN12_GLOBAL__N_11A1fEiENKUliSt6vectorIiSaIiEEE_clEiS3_", "(anon)::A::f::{lambda#1}"},
    {"_ZZ4mainENK3$_0clEi", "main::{lambda#1}"},
    {"main::{lambda}::operator()", "main::{lambda}"},
    {"_D3foo3barFZv.part.0", "foo.bar"},
    {"_D3app5Table6__ctorMFmZCQwQu", "app.Table.this"},
    {"_D3app5Table6__dtorMFZv", "app.Table.~this"},
    {"_D3app5Table6insertMFAyaiZv", "app.Table.insert"},
    {"_D3app__T4PairTiZQi3sumMFNaNbNiNfZi", "app.Pair!(int).Pair.sum"},
    {"_D3std4conv__T7toCharsVii10TaVEQBd5ascii10LetterCasei1TiZQBrFNaNbNiNfiZ6Result8popFrontMFNaNb"
     "NiNfZv",
     "std.conv.toChars!(10, char, 1, int).toChars.Result.popFront"},
    {"_Dmain", "_Dmain"},
    {"_D9broken", "_D9broken"},
    {"$s4main3fooyyF@x", "$s4main3fooyyF@x"},
    {"_ZZ4mainENKUlvE_clEv", "main::{lambda#1}"},
    {"_ZZ4mainENKUliE0_clEi", "main::{lambda#2}"},
    {"_ZThn16_N3Foo3barEv", "non-virtual thunk to Foo::bar()"},
    {"_Z3fooB5cxx11v", "foo"},
    {"load[abi:cxx11]", "load"},
    {"_Zbroken", "_Zbroken"},
    {"_Z", "_Z"},
    // The standard library as its users write it.
    {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int>::push_back"},
    {"_ZNSs6appendEPKc", "std::string::append"},
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC2ERKS4_", "std::string::basic_string"},
    {"_ZNSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE6appendEPKw", "std::wstring::append"},
    {"_ZNSt7__cxx1112basic_stringIDiSt11char_traitsIDiESaIDiEE6appendEPKDi",
     "std::basic_string<char32_t>::append"},
    {"_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEED1Ev",
     "std::stringstream::~basic_stringstream"},
    {"_ZNSt3mapIiNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt4lessIiESaISt4pairIKiS5_"
     "EEEixEOi",
     "std::map<int, std::string>::operator[]"},
    {"_ZNSt13unordered_mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES5_St4hashIS5_"
     "ESt8equal_toIS5_ESaISt4pairIKS5_S5_EEEixEOS5_",
     "std::unordered_map<std::string, std::string>::operator[]"},
    {"_ZNSt10unique_ptrI3FooSt14default_deleteIS0_EED2Ev", "std::unique_ptr<Foo>::~unique_ptr"},
    {"_ZNKSt3__16vectorIiNS_9allocatorIiEEE4sizeEv", "std::vector<int>::size"},
    {"_ZNSt6vectorIS_IiSaIiEESaIS1_EE6resizeEm", "std::vector<std::vector<int>>::resize"},
    {"_ZNSt6chrono3_V212system_clock3nowEv", "std::chrono::system_clock::now"},
    {"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
     "std::operator<< <std::char_traits<char>>"},
    {"_ZNSt17_Function_handlerIFvvEZ4mainEUlvE_E9_M_invokeERKSt9_Any_data",
     "std::_Function_handler<void (), main::{lambda#1}>::_M_invoke"},
    {"_ZN9__gnu_cxx13new_allocatorIiE8allocateEmPKv", "__gnu_cxx::new_allocator<int>::allocate"},
    // Rust, both manglings.
    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.123", "core::fmt::Write::write_fmt"},
    {"_ZN50_$LT$T$u20$as$u20$core..convert..From$LT$T$GT$$GT$4from17h0123456789abcdefE",
     "<T as core::convert::From<T>>::from"},
    {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
    {"_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"},
    {"_RNvMs0_NtCs1234_7mycrate3fooNtB5_3Bar3new", "<mycrate::foo::Bar>::new"},
    {"__rust_alloc", "__rust_alloc"},
};

static const struct row demangled[] = {
    // What is not a default stays.
    {"std::vector<int, my::allocator<int> >::at", "std::vector<int, my::allocator<int>>::at"},
    {"std::map<int, int, std::greater<int>, std::allocator<std::pair<int const, int> > >::at",
     "std::map<int, int, std::greater<int>>::at"},
    {"std::map<int, int, std::less<void>, std::allocator<int> >",
     "std::map<int, int, std::less<void>>"},
    {"std::set<int, std::less<long>, my::pool<int> >",
     "std::set<int, std::less<long>, my::pool<int>>"},
    {"std::unique_ptr<Foo, std::default_delete<Bar> >",
     "std::unique_ptr<Foo, std::default_delete<Bar>>"},
    {"std::pair<int, std::allocator<int> >", "std::pair<int, std::allocator<int>>"},
    {"mine::vector<int, std::allocator<int> >", "mine::vector<int, std::allocator<int>>"},
    {"mine::std::vector<int, std::allocator<int> >", "mine::std::vector<int, std::allocator<int>>"},
    {"std::basic_string<char, my::traits, std::allocator<char> >",
     "std::basic_string<char, my::traits>"},
    {"mine::__1::f", "mine::__1::f"},
    {"mine::__cxx11::f", "mine::__cxx11::f"},
    // Adaptors and nesting.
    {"std::queue<int, std::deque<int, std::allocator<int> > >::push", "std::queue<int>::push"},
    {"std::stack<int, std::vector<int, std::allocator<int> > >",
     "std::stack<int, std::vector<int>>"},
    {"std::priority_queue<int, std::vector<int, std::allocator<int> >, std::less<int> >",
     "std::priority_queue<int>"},
    {"f<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&>",
     "f<std::string const&>"},
    {"std::filesystem::__cxx11::path::path", "std::filesystem::path::path"},
    // Operators and expressions are not brackets.
    {"operator< <int>", "operator< <int>"},
    {"operator<< <int>", "operator<< <int>"},
    {"operator<=> <int>", "operator<=> <int>"},
    {"Foo::operator()<int>", "Foo::operator()<int>"},
    {"Foo::operator-><int>", "Foo::operator-><int>"},
    {"Foo<(1)<(2)>::f", "Foo<(1)<(2)>::f"},
    {"Foo<((1)>(2))>::f", "Foo<((1)>(2))>::f"},
    {"Foo<&(operator>(A, B))>::f", "Foo<&(operator>(A, B))>::f"},
    {"cooperator<int>", "cooperator<int>"},
    // Empty packs.
    {"f<int, >", "f<int>"},
    {"f<void (&)(), , void>", "f<void (&)(), , void>"},
    // ABI tags.
    {"A::B[abi:cxx11]", "A::B"},
    {"A::B[abi:cxx11]<int>::f", "A::B<int>::f"},
    // What does not nest comes back unchanged.
    {"f<int", "f<int"},
    {"f(int>", "f(int>"},
    {"std::vector<int, std::allocator<int> ", "std::vector<int, std::allocator<int> "},
    {"}", "}"},
    {"", ""},
    {"[abi:", "[abi:"},
};

static void mangled_names_become_readable(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mangled / sizeof mangled[0]; i++) {
        char *name = name_readable(mangled[i].from);
        assert_non_null(name);
        assert_string_equal(name, mangled[i].to);
        free(name);
    }
}

static void demangled_names_are_cleaned(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof demangled / sizeof demangled[0]; i++) {
        char *name = name_clean_cxx(demangled[i].from);
        assert_non_null(name);
        assert_string_equal(name, demangled[i].to);
        free(name);
    }
}

static void cleaning_twice_changes_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof demangled / sizeof demangled[0]; i++) {
        char *again = name_clean_cxx(demangled[i].to);
        assert_string_equal(again, demangled[i].to);
        free(again);
    }
}

static void deep_nesting_comes_back_unchanged(void **state) {
    (void)state;
    enum { DEPTH = 5000 };
    char *deep = calloc(1, 3 * DEPTH + 1);
    for (int i = 0; i < DEPTH; i++) memcpy(deep + 2 * i, "A<", 2);
    memset(deep + 2 * DEPTH, '>', DEPTH);
    char *name = name_clean_cxx(deep);
    assert_string_equal(name, deep);
    free(name);
    free(deep);
}

static void huge_and_hostile_names_end(void **state) {
    (void)state;
    enum { LENGTH = 200000 };
    char *huge = malloc(LENGTH + 1);
    memset(huge, 'P', LENGTH);
    memcpy(huge, "_Z1f", 4);
    huge[LENGTH] = '\0';
    char *name = name_readable(huge);
    assert_string_equal(name, huge);
    free(name);
    huge[3000] = '\0';
    name = name_readable(huge);
    assert_non_null(name);
    free(name);
    free(huge);
}

static void async_code_has_its_own_names(void **state) {
    (void)state;
    static const struct {
        const char *readable, *word, *name;
    } rows[] = {
        {"app::load::{{closure}}", "{async_fn#0}", "async fn app::load"},
        {"<app::Session>::serve::{closure#0}", "{async_fn#0}", "async fn <app::Session>::serve"},
        {"app::serve::{{closure}}::{{closure}}", "{async_block#2}", "app::serve::{async block#2}"},
        {"app::serve::{closure#0}::{closure#12}", "{async_closure#0}<u8>",
         "app::serve::{async closure#0}"},
        {"app::load::{closure#", "{async_fn#", "async fn app::load::{closure#"},
        {"", "{async_block#}", "::{async block#}"},
        {"app::load::{{closure}}", "{closure#0}", NULL},
        {"app::load::{{closure}}", "{async_gen#0}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *name = name_of_async(rows[i].readable, rows[i].word);
        if (rows[i].name)
            assert_string_equal(name, rows[i].name);
        else
            assert_null(name);
        free(name);
    }
    assert_string_equal(name_last_closure("app::boxed::{async block#0}"), "{async block#0}");
}

// Each name cut at each place and with each byte replaced must be survived (run with sanitizers).
static void broken_names_are_survived(void **state) {
    (void)state;
    char text[512];
    for (size_t i = 0; i < sizeof mangled / sizeof mangled[0]; i++) {
        size_t length = strlen(mangled[i].from);
        for (size_t cut = 0; cut < length; cut++) {
            memcpy(text, mangled[i].from, length + 1);
            text[cut] = "<>(),:E9 "[cut % 9];
            free(name_readable(text));
            free(name_clean_cxx(text));
            text[cut] = '\0';
            free(name_readable(text));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mangled_names_become_readable),
        cmocka_unit_test(demangled_names_are_cleaned),
        cmocka_unit_test(cleaning_twice_changes_nothing),
        cmocka_unit_test(deep_nesting_comes_back_unchanged),
        cmocka_unit_test(huge_and_hostile_names_end),
        cmocka_unit_test(broken_names_are_survived),
        cmocka_unit_test(async_code_has_its_own_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
