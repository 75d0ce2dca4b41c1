// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tool/render/groups.h"

static void check_name(const char *name, const char *expected, bool is_element) {
    char type[GROUP_TEXT_BYTES];
    bool is_found_element;
    bool is_found = type_of_name(name, type, sizeof type, &is_found_element);
    assert_int_equal(is_found, expected != NULL);
    if (!expected) return;
    assert_string_equal(type, expected);
    assert_int_equal(is_found_element, is_element);
}

static void test_names(void **state) {
    (void)state;
    check_name("std::map<std::string, long>::operator[]", "std::map<std::string, long>", false);
    check_name("std::vector<std::pair<int, long>>::push_back", "std::vector<std::pair<int, long>>",
               false);
    check_name("std::string::basic_string", "std::string", false);
    check_name("std::make_shared<ns::Node, int const&>", "ns::Node", false);
    check_name("std::make_unique<Node []>", "Node []", false);
    check_name("std::__new_allocator<ns::Node<int, long>>::allocate", "ns::Node<int, long>", true);
    check_name("std::allocator_traits<std::allocator<int>>::allocate", "std::allocator<int>", true);
    check_name("alloc::raw_vec::RawVecInner<A>::reserve::do_reserve_and_handle", NULL, false);
    check_name("<alloc::raw_vec::RawVec<T,A>>::grow_one", NULL, false);
    check_name("hashbrown::raw::RawTableInner::prepare_resize", NULL, false);
    check_name("core::option::Option<T>::map_or_else", NULL, false);
    check_name("alloc::vec::Vec<T>::push", "alloc::vec::Vec<T>", false);
    check_name("hashbrown::map::HashMap<K,V,S,A>::reserve", "hashbrown::map::HashMap<K,V>", false);
    check_name("<alloc::vec::Vec<u8>>::with_capacity", "alloc::vec::Vec<u8>", false);
    check_name("<alloc::vec::Vec<T,A> as core::clone::Clone>::clone", "alloc::vec::Vec<T>", false);
    check_name("alloc::collections::btree::node::LeafNode<K,V>::new", NULL, false);
    check_name("<r::Order as core::clone::Clone>::clone", NULL, false);
    check_name("std::vector<A,S>::push_back", "std::vector<A,S>", false);
    check_name("<alloc::vec::Vec<u8>", NULL, false);
    check_name("std::_Rb_tree<int, int>::_M_get_node", NULL, false);
    check_name("std::operator+<char>", NULL, false);
    check_name("operator new", NULL, false);
    check_name("main", NULL, false);
    check_name("std::map<", NULL, false);
    check_name("a::b<>::", "a::b<>", false);
    check_name(">>>::<<<", NULL, false);
    check_name("", NULL, false);
}

static void check_stack(const char *const *functions, size_t count, const char *expected) {
    struct frame frames[8] = {0};
    char label[GROUP_TEXT_BYTES], location[GROUP_TEXT_BYTES];
    struct frame_list list = {0};
    for (size_t i = 0; i < count; i++) {
        frames[i].function = functions[i];
        frames[i].is_allocator = functions[i] && !strcmp(functions[i], "operator new");
        *array_push(&list.frames) = &frames[i];
    }
    type_of_stack(&list, label, location);
    assert_string_equal(label, expected);
    frame_list_free(&list);
}
#define CHECK_STACK(expected, ...)                                                                 \
    check_stack((const char *const[]){__VA_ARGS__},                                                \
                sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *), expected)

static void test_stacks(void **state) {
    (void)state;
    CHECK_STACK("std::map<int, Node>", "operator new", "std::__new_allocator<Tree>::allocate",
                "std::_Rb_tree<int>::_M_get_node", "std::map<int, Node>::operator[]", "main");
    CHECK_STACK("Node", "operator new", "std::__new_allocator<Node>::allocate", "fill",
                "std::vector<int>::push_back");
    CHECK_STACK("std::string", "operator new", "std::string::_M_construct<char*>",
                "std::vector<std::string>::push_back");
    CHECK_STACK(
        "alloc::collections::btree::map::BTreeMap<K,V>", "alloc::alloc::alloc",
        "alloc::boxed::Box<T,A>::new_uninit_in",
        "alloc::collections::btree::node::LeafNode<K,V>::new",
        "<alloc::collections::btree::map::BTreeMap<K,V> as core::iter::FromIterator>::from_iter",
        "r::index");
    CHECK_STACK("alloc::string::String", "<alloc::raw_vec::RawVec<u8>>::with_capacity_in",
                "<alloc::vec::Vec<u8>>::with_capacity", "<u8 as alloc::slice::ConvertVec>::to_vec",
                "<[u8]>::to_vec_in", "<alloc::string::String as core::clone::Clone>::clone",
                "r::index");
    CHECK_STACK(
        "std::collections::hash::set::HashSet<T>", "hashbrown::map::HashMap<K,V,S,A>::reserve",
        "<std::collections::hash::set::HashSet<T,S> as core::iter::Extend<T>>::extend", "r::main");
    CHECK_STACK("alloc::boxed::Box<T>", "alloc::boxed::Box<T>::new_uninit", "r::load",
                "<alloc::collections::btree::map::BTreeMap<K,V>>::insert");
    CHECK_STACK("[no type known]", "operator new", "main", "std::vector<int>::push_back");
    CHECK_STACK("[no type known]", NULL, "std::vector<int>::push_back");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
