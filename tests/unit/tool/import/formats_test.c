// SPDX-License-Identifier: Apache-2.0
// Which format a file is of, and the numbers of small files that were worked out by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tool/import/import.h"

static struct imported imported;
static struct error error;

static int setup(void **state) {
    (void)state;
    return import_start(&imported, &error) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    import_free(&imported);
    return 0;
}

static bool read_text(const char *text, const struct import_format **format) {
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(in);
    *format = NULL;
    bool is_ok = import_read(in, format, &imported, &error);
    fclose(in);
    return is_ok;
}

static struct import_values sum_of_all(void) {
    struct import_values sum = {0};
    for (size_t i = 0; i < imported.stacks.count; i++) {
        const struct import_values *values = &imported.stacks.items[i].values;
        sum.calls += values->calls;
        sum.allocated_bytes += values->allocated_bytes;
        sum.peak_bytes += values->peak_bytes;
        sum.exit_bytes += values->exit_bytes;
        sum.temporary += values->temporary;
    }
    return sum;
}

// Version, command, a module's line, one place, one allocation of 0x64 bytes, twice, freed once.
static void test_heaptrack(void **state) {
    static const char text[] = "v 10400 3\nX program\nI 1000 10\n"
                               "s 4 main\ni 400100 1 2\nt 1 0\na 64 1\n+ 0\n+ 0\nc 5\n- 0\n";
    const struct import_format *format;
    (void)state;
    if (!read_text(text, &format)) fail_msg("%s", error.text);
    assert_string_equal(format->name, "heaptrack");
    struct import_values sum = sum_of_all();
    assert_int_equal(sum.calls, 2);
    assert_int_equal(sum.allocated_bytes, 200);
    assert_int_equal(sum.peak_bytes, 200);
    assert_int_equal(sum.exit_bytes, 100);
}

static void test_massif(void **state) {
    static const char text[] =
        "desc: (none)\ncmd: program\ntime_unit: ms\n"
        "#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\n"
        "mem_stacks_B=0\nheap_tree=empty\n"
        "#-----------\nsnapshot=1\n#-----------\ntime=5\nmem_heap_B=300\nmem_heap_extra_B=0\n"
        "mem_stacks_B=0\nheap_tree=peak\n"
        "n1: 300 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
        " n0: 300 0x401136: main (program.c:12)\n";
    const struct import_format *format;
    (void)state;
    if (!read_text(text, &format)) fail_msg("%s", error.text);
    assert_string_equal(format->name, "massif");
    assert_int_equal(sum_of_all().peak_bytes, 300);
    assert_string_equal(imported.command, "program");
}

// A damaged tree whose children have more than a number can hold: read or refused, within bounds.
static void test_massif_of_too_many_bytes(void **state) {
    static const char text[] =
        "desc: (none)\ncmd: program\ntime_unit: ms\n"
        "#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=300\nmem_heap_extra_B=0\n"
        "mem_stacks_B=0\nheap_tree=peak\n"
        "n3: 64 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
        " n0: 9223372036854775807 0x401136: a (program.c:1)\n"
        " n0: 64 0x401137: b (program.c:2)\n n0: 9223372036854775807 0x401138: c (program.c:3)\n";
    const struct import_format *format;
    (void)state;
    if (!read_text(text, &format)) assert_true(error.text[0]);
}

// Each stack within bounds, all together not: no recording with a wrong sum.
static void test_sums_beyond_a_number_are_refused(void **state) {
    enum { STACKS = 16 };
    const struct import_values values = {.exit_bytes = INT64_MAX / 8,
                                         .allocated_bytes = INT64_MAX / 8};
    FILE *out = fopen("/dev/null", "w");
    (void)state;
    assert_non_null(out);
    for (int i = 0; i < STACKS; i++) {
        struct import_stack *stack = array_push(&imported.stacks);
        assert_non_null(stack);
        *stack = (struct import_stack){.node = 0, .values = values};
    }
    assert_false(import_write(out, &imported, "test", &error));
    assert_string_equal(error.text, "its stacks have more bytes than a number can hold");
    fclose(out);
}

static void test_what_is_of_no_format_is_refused(void **state) {
    static const char *const texts[] = {"hello\n", "{\"json\": true}\n",
                                        ("\x7f"
                                         "ELF"),
                                        "v\n"};
    const struct import_format *format;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (read_text(texts[i], &format)) fail_msg("%s was read as %s", texts[i], format->name);
        assert_true(error.text[0]);
    }
}

static void test_formats_are_found_by_name(void **state) {
    (void)state;
    for (const struct import_format *format = import_formats; format->name; format++)
        assert_ptr_equal(import_format_find(format->name), format);
    assert_null(import_format_find("no-such"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heaptrack, setup, teardown),
        cmocka_unit_test_setup_teardown(test_massif, setup, teardown),
        cmocka_unit_test_setup_teardown(test_massif_of_too_many_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sums_beyond_a_number_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_of_no_format_is_refused, setup, teardown),
        cmocka_unit_test(test_formats_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
