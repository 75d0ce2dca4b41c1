// SPDX-License-Identifier: Apache-2.0
// Debug information that is small and would take hours to read: everything in it covers all of
// the code. Reading ends, says so, and the symbol table's names are there all the same.
#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/symbol.h"

#define QUERY_COUNT 30000
#define END_AFTER_S 120  // far more than it takes, far less than without a bound

static const char source[] =
    ".text\n.globl _start\n.type _start,@function\n"
    "_start: .fill 0x100000, 1, 0x90\nend: .size _start, 0x100000\n"
    ".section .debug_abbrev,\"\",@progbits\nabbrev:\n"
    ".byte 1, 0x11, 1, 0x11, 1, 0x55, 0x17, 0x10, 0x17, 0, 0\n"  // unit: ranges, lines
    ".byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0\n"           // function: name, code
    ".byte 3, 0x1d, CHILDREN, 0x11, 1, 0x12, 6, 0, 0\n"          // inlined: code
    ".byte 0\n"
    ".section .debug_info,\"\",@progbits\n"
    ".rept UNITS\n.long 2f - 1f\n1: .value 5\n.byte 1, 8\n.long abbrev\n"
    ".byte 1\n.quad 0\n.long ranges, lines\n"
    ".byte 2\n.asciz \"inner\"\n.quad _start\n.long 0x100000\n"
    ".rept INLINED\n.byte 3\n.quad _start\n.long 0x100000\n.endr\n"
    ".fill INLINED * CHILDREN + 2, 1, 0\n2:\n.endr\n"
    ".section .debug_rnglists,\"\",@progbits\n"
    ".long 2f - 1f\n1: .value 5\n.byte 8, 0\n.long 0\n"
    "ranges: .rept RANGES\n.byte 6\n.quad _start, end\n.endr\n.byte 0\n2:\n"
    ".section .debug_line,\"\",@progbits\n"
    "lines: .long 2f - 1f\n1: .value 5\n.byte 8, 0\n.long 4f - 3f\n"
    "3: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1\n"
    ".byte 1, 1, 8, 1\n.asciz \"/d\"\n.byte 1, 1, 8, 2\n.asciz \"f.c\", \"f.c\"\n"
    "4: .rept ROWS\n.byte 0, 9, 2\n.quad _start\n.byte 1, 2\n.uleb128 0xfffff\n.byte "
    "1\n.endr\n2:\n";

static struct symbol_query queries[QUERY_COUNT];

static void check(const char *defines, bool is_too_much) {
    assert_true(run("gcc -nostdlib -no-pie -DUNITS=%s -x assembler-with-cpp program.S -o program",
                    defines));
    const uint64_t first = address_of("program", "_start");
    struct symbol_table *table;
    struct symbol_report report;
    struct error error;
    assert_true(symbol_table_open(&table, NULL, NULL, &error));
    for (size_t i = 0; i < QUERY_COUNT; i++)
        queries[i] = (struct symbol_query){.address = first + 10 * i};
    struct symbol_module module = {.path = in_scratch("program")};
    alarm(END_AFTER_S);
    assert_true(symbol_resolve(table, &module, queries, QUERY_COUNT, &report, &error));
    alarm(0);
    assert_int_equal(report.note && strstr(report.note, "too long") != NULL, is_too_much);
    assert_int_equal(report.resolved_count, QUERY_COUNT);
    if (!is_too_much) {
        assert_int_equal(queries[QUERY_COUNT - 1].frame_count, 2);
        assert_string_equal(queries[QUERY_COUNT - 1].frames[1].function, "_start");
        assert_non_null(queries[QUERY_COUNT - 1].frames[0].file);
        assert_string_equal(queries[QUERY_COUNT - 1].frames[0].file, "/d/f.c");
    }
    symbol_table_close(table);
}

static void little_of_all_is_read_whole(void **state) {
    (void)state;
    check("3 -DRANGES=3 -DINLINED=3 -DROWS=3 -DCHILDREN=0", false);
}

static void ranges_of_many_units_overlap(void **state) {
    (void)state;
    check("10000 -DRANGES=20000 -DINLINED=0 -DROWS=1 -DCHILDREN=0", true);
}

static void inlined_functions_overlap(void **state) {
    (void)state;
    check("1 -DRANGES=1 -DINLINED=100000 -DROWS=1 -DCHILDREN=0", true);
}

static void inlined_functions_are_deep(void **state) {
    (void)state;
    check("1 -DRANGES=1 -DINLINED=500 -DROWS=1 -DCHILDREN=1", true);
}

static void lines_are_told_again_and_again(void **state) {
    (void)state;
    check("1 -DRANGES=1 -DINLINED=0 -DROWS=100000 -DCHILDREN=0", true);
}

static int open_all(void **state) {
    if (scratch_open(state)) return -1;
    write_source("program.S", source);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_of_all_is_read_whole),
        cmocka_unit_test(ranges_of_many_units_overlap),
        cmocka_unit_test(inlined_functions_overlap),
        cmocka_unit_test(inlined_functions_are_deep),
        cmocka_unit_test(lines_are_told_again_and_again),
    };
    return cmocka_run_group_tests(tests, open_all, scratch_close);
}
