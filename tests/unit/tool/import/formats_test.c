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

static bool read_bytes(const char *bytes, size_t size, const struct import_format **format) {
    FILE *in = fmemopen((void *)(uintptr_t)bytes, size, "r");
    assert_non_null(in);
    *format = NULL;
    bool is_ok = import_read(in, format, &imported, &error);
    fclose(in);
    return is_ok;
}

static bool read_text(const char *text, const struct import_format **format) {
    return read_bytes(text, strlen(text), format);
}

static void check_read(const char *text, const char *name) {
    const struct import_format *format;
    if (!read_text(text, &format)) fail_msg("%s", error.text);
    assert_string_equal(format->name, name);
}

static const char *function_of_frame(size_t index) {
    return imported.strings.list.items[imported.frames.items[index].function];
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

// With its trailer, or without one: cut off.
static void test_heaptrack_that_is_cut(void **state) {
    static const char text[] = "v 10400 3\nX program\nI 1000 10\na 64 0\n+ 0\nc 5\n";
    static const char whole[] =
        "v 10400 3\nX program\nI 1000 10\na 64 0\n+ 0\nc 5\n# strings: 0\n# ips: 0\n";
    (void)state;
    check_read(whole, "heaptrack");
    assert_false(imported.is_cut || imported.is_partial);
    check_read(text, "heaptrack");
    assert_true(imported.is_cut && imported.is_partial);
    assert_non_null(strstr(imported.lacks, "the end (the file is cut off)"));
}

static void test_heaptrack_without_data(void **state) {
    const struct import_format *format;
    (void)state;
    assert_false(read_text("\n# strings: 0\n# ips: 0\n", &format));
    assert_non_null(strstr(error.text, "heaptrack: it has an end and no data"));
}

static void test_massif_without_trees(void **state) {
    (void)state;
    check_read("desc: (none)\ncmd: program\ntime_unit: ms\n"
               "#-----------\nsnapshot=0\n#-----------\ntime=5\nmem_heap_B=500\n"
               "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n"
               "#-----------\nsnapshot=1\n#-----------\ntime=9\nmem_heap_B=70\n"
               "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n",
               "massif");
    struct import_values sum = sum_of_all();
    assert_int_equal(sum.peak_bytes, 500);
    assert_int_equal(sum.exit_bytes, 70);
    assert_int_equal(imported.peak_ns, 5000000);
    assert_non_null(strstr(imported.lacks, "who holds what at the peak"));
}

// The form that the Rust crate writes: lines of its own, another mode, columns behind lines.
static void test_dhat_of_rust(void **state) {
    (void)state;
    check_read(
        "{\n  \"dhatFileVersion\": 2,\n  \"mode\": \"rust-heap\",\n  \"bklt\": true,\n"
        "  \"cmd\": \"x\", \"pid\": 1, \"pps\": [\n"
        "{\"tb\": 60, \"tbk\": 6, \"gb\": 40, \"gbk\": 4, \"eb\": 10, \"ebk\": 1, \"fs\": [1]}],\n"
        "  \"ftbl\": [\"[root]\", \"0x51: demo::hold (demo/src/main.rs:46:17)\"]\n}\n",
        "dhat");
    assert_int_equal(sum_of_all().peak_bytes, 40);
    assert_string_equal(function_of_frame(0), "demo::hold");
    assert_int_equal(imported.frames.items[0].line, 46);
}

static void test_v8_with_white_space(void **state) {
    (void)state;
    check_read("{\n\t\"head\": {\n\t\t\"callFrame\": {\"functionName\": \"(root)\"}, \"selfSize\": "
               "0, \"id\": 1,\n"
               "\"children\": [{\"callFrame\": {\"functionName\": \"hold\", \"url\": \"a.js\", "
               "\"lineNumber\": 4},"
               "\"selfSize\": 96, \"id\": 2, \"children\": []}]}, \"samples\": []}\n",
               "v8");
    assert_int_equal(sum_of_all().exit_bytes, 96);
    assert_int_equal(imported.frames.items[0].line, 5);
}

// Names in front: of the address, or of the byte before it; several of one address if inlined.
static void test_symbolized_profile(void **state) {
    (void)state;
    check_read(
        "--- symbol\nbinary=/usr/bin/app\n0x0000000000401142 hold\n0x0000000000401163 main--fill\n"
        "---\n--- heap\nheap profile:  2: 300 [ 3: 500] @ heapprofile\n"
        " 2: 300 [ 3: 500] @ 0x401142 0x401164\n",
        "gperftools");
    struct import_values sum = sum_of_all();
    assert_int_equal(sum.exit_bytes, 300);
    assert_int_equal(sum.allocated_bytes, 500);
    assert_string_equal(imported.command, "/usr/bin/app");
    assert_string_equal(function_of_frame(0), "hold");
    assert_string_equal(function_of_frame(1), "fill");
    assert_string_equal(function_of_frame(2), "main");
    assert_false(imported.is_partial);
    const struct import_format *format;
    assert_false(read_text("--- symbol\nbinary=x\n---\n--- cpu\n", &format));
}

// The last line may have lost frames: what is imported is not all there was.
static void test_symbolized_profile_cut_off(void **state) {
    (void)state;
    check_read("--- symbol\nbinary=/usr/bin/app\n0x0000000000401142 hold\n---\n--- heap\n"
               "heap profile:  2: 300 [ 3: 500] @ heapprofile\n 2: 300 [ 3: 500] @ 0x4011",
               "gperftools");
    assert_true(imported.is_partial);
    assert_non_null(strstr(imported.lacks, "the end (the file is cut off)"));
}

// One sample of a profile with one type: inuse_space.
static bool read_pprof(const char *unit, const char *value, size_t value_bytes) {
    static const char head[] = "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x0b"
                               "inuse_space\x32";
    char bytes[128];
    size_t used = sizeof head - 1;
    const struct import_format *format;
    memcpy(bytes, head, used);
    bytes[used++] = (char)strlen(unit);
    memcpy(bytes + used, unit, strlen(unit));
    used += strlen(unit);
    bytes[used++] = 0x12;
    bytes[used++] = (char)(value_bytes + 1);
    bytes[used++] = 0x10;
    memcpy(bytes + used, value, value_bytes);
    return read_bytes(bytes, used + value_bytes, &format);
}

static void test_units_of_pprof(void **state) {
    (void)state;
    if (!read_pprof("kilobytes", "\x04", 1)) fail_msg("%s", error.text);
    assert_int_equal(sum_of_all().exit_bytes, 4096);
    assert_non_null(strstr(imported.lacks, "numbers of blocks and calls"));
    if (!read_pprof("bytes", "\x04", 1)) fail_msg("%s", error.text);
    assert_int_equal(sum_of_all().exit_bytes, 4096 + 4);
    assert_false(read_pprof("furlongs", "\x04", 1));
    assert_non_null(strstr(error.text, "the unit \"furlongs\" of inuse_space is not known"));
    assert_false(read_pprof("bytes", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
    assert_non_null(strstr(error.text, "negative values"));
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
        cmocka_unit_test_setup_teardown(test_heaptrack_that_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heaptrack_without_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_massif_without_trees, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dhat_of_rust, setup, teardown),
        cmocka_unit_test_setup_teardown(test_v8_with_white_space, setup, teardown),
        cmocka_unit_test_setup_teardown(test_symbolized_profile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_symbolized_profile_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_units_of_pprof, setup, teardown),
        cmocka_unit_test_setup_teardown(test_massif_of_too_many_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sums_beyond_a_number_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_of_no_format_is_refused, setup, teardown),
        cmocka_unit_test(test_formats_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
