// SPDX-License-Identifier: Apache-2.0
// Parts of resident memory add up to it, whatever is known of the heap; memory with a name is told
// by it, no more than there is, and safe to print.
#include "tool/cmds/core_overview_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct rss_parts resident;
static struct giveback giveback;

static int setup(void **state) {
    (void)state;
    static struct mapped_name names[] = {
        {"pool\n", 400, 400, 0}, {"a", 300, 300, 0}, {"b", 200, 200, 0}, {"c", 100, 100, 0}};
    memset(&giveback, 0, sizeof giveback);
    memset(&resident, 0, sizeof resident);
    resident.picture.heap_bytes = 5000;
    resident.picture.files_bytes = 700;
    resident.picture.stacks_bytes = 60;
    resident.names.items = names;
    resident.names.count = sizeof names / sizeof *names;
    return 0;
}

static uint64_t bytes_of(const struct resident_parts *parts, const char *text) {
    for (size_t i = 0; i < parts->count; i++)
        if (!strcmp(parts->items[i].text, text)) return parts->items[i].bytes;
    return 0;
}

static void test_known_heap(void **state) {
    (void)state;
    struct heap_state heap = {.free_resident_bytes = 1000};
    struct resident_parts parts = {.count = 0};
    heap.residency.resident_bytes = 3000;
    resident_parts_find(&resident, &heap, &giveback, NULL, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(resident_parts_bytes(&parts, PART_USED), 2000);
    assert_int_equal(resident_parts_bytes(&parts, PART_FREE), 1000);
    assert_int_equal(bytes_of(&parts, "[anon:pool\\x0a]"), 400);
    assert_int_equal(bytes_of(&parts, "[anon:b]"), 200);
    assert_int_equal(bytes_of(&parts, "[anon:c]"), 0);  // the fourth
    // so little is what the dynamic linker and libc map for each program
    assert_int_equal(bytes_of(&parts, "mapped by the program or another allocator"), 0);
    assert_int_equal(bytes_of(&parts, "code, data and files"), 1800);
}

static void test_mapped_by_the_program(void **state) {
    (void)state;
    enum { MAPPED = 200 << 10 };
    struct heap_state heap = {.free_resident_bytes = 1000};
    struct resident_parts parts = {.count = 0};
    heap.residency.resident_bytes = 3000;
    resident.picture.heap_bytes += MAPPED;
    resident_parts_find(&resident, &heap, &giveback, NULL, &parts);
    assert_int_equal(parts.all_bytes, 5760 + MAPPED);
    assert_int_equal(bytes_of(&parts, "mapped by the program or another allocator"), 1100 + MAPPED);
    assert_int_equal(bytes_of(&parts, "code, data and files"), 700);
}

// Names are within what is no heap: no more of them is told than that.
static void test_more_named_than_there_is(void **state) {
    (void)state;
    struct heap_state heap = {.free_resident_bytes = 0};
    struct resident_parts parts = {.count = 0};
    heap.residency.resident_bytes = 4500;
    resident_parts_find(&resident, &heap, &giveback, NULL, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(bytes_of(&parts, "[anon:pool\\x0a]"), 400);
    assert_int_equal(bytes_of(&parts, "[anon:a]"), 100);
    assert_int_equal(bytes_of(&parts, "[anon:b]"), 0);
}

static void test_unknown_heap(void **state) {
    (void)state;
    struct resident_parts parts = {.count = 0};
    resident_parts_find(&resident, NULL, &giveback, NULL, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(bytes_of(&parts, "[anon:a]"), 300);
    assert_int_equal(bytes_of(&parts, "heap and other anonymous memory"), 4100);
}

// Python's allocator is told with what of it is free, and no more of it than there is.
static void test_python(void **state) {
    (void)state;
    struct heap_state heap = {.free_resident_bytes = 0};
    struct python_pools python = {.pool_count = 1, .bytes = 700, .used_bytes = 600};
    struct resident_parts parts = {.count = 0};
    heap.residency.resident_bytes = 4000;
    resident_parts_find(&resident, &heap, &giveback, &python, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(bytes_of(&parts, "in Python's pymalloc, 100 B of it free"), 700);
    python.bytes = 5000;
    python.used_bytes = 6000;
    resident_parts_find(&resident, &heap, &giveback, &python, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(bytes_of(&parts, "in Python's pymalloc, 0 B of it free"), 1000);
}

// No more is told of another allocator's heap than there is of anonymous memory.
static void test_another_heap(void **state) {
    (void)state;
    const struct other_resident other = {"jemalloc", 3000, 2500}, more = {"jemalloc", 9000, 8000};
    struct resident_parts parts = {.count = 0};
    resident_parts_find_other(&resident, &other, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(bytes_of(&parts, "in use in jemalloc"), 2500);
    assert_int_equal(resident_parts_bytes(&parts, PART_FREE), 500);
    assert_int_equal(bytes_of(&parts, "[anon:a]"), 300);
    assert_int_equal(bytes_of(&parts, "other anonymous memory"), 1100);
    resident_parts_find_other(&resident, &more, &parts);
    assert_int_equal(parts.all_bytes, 5760);
    assert_int_equal(bytes_of(&parts, "in use in jemalloc"), 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_known_heap, setup),
                                       cmocka_unit_test_setup(test_mapped_by_the_program, setup),
                                       cmocka_unit_test_setup(test_more_named_than_there_is, setup),
                                       cmocka_unit_test_setup(test_unknown_heap, setup),
                                       cmocka_unit_test_setup(test_python, setup),
                                       cmocka_unit_test_setup(test_another_heap, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
