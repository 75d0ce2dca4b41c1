// SPDX-License-Identifier: Apache-2.0
// Which of several symbols names an address.
#include "tests/unit/tool/symbol/programs.h"

#include "tool/symbol/image.h"

// Four functions of 16 bytes: one with aliases, one with a label inside, one without a size, one
// that contains another; then a label alone.
static const char source[] = ".macro function name, size\n"
                             "    .type \\name, @function\n"
                             "    .size \\name, \\size\n"
                             ".endm\n"
                             ".text\n"
                             ".balign 4096\n"
                             ".globl base, grab, __grab, __libc_grab, weak_grab\n"
                             ".weak weak_grab\n"
                             "base: grab: __grab: __libc_grab: weak_grab: local_grab:\n"
                             "    .skip 16\n"
                             "function grab, 16\nfunction __grab, 16\nfunction __libc_grab, 16\n"
                             "function weak_grab, 16\nfunction local_grab, 16\n"
                             "labelled: .skip 8\n"
                             "inside: .skip 8\n"
                             "function labelled, 16\n"
                             "sizeless: .skip 16\n"
                             ".type sizeless, @function\n"
                             "outside: .skip 4\n"
                             "nested: .skip 4\n"
                             "    .skip 8\n"
                             "function outside, 16\nfunction nested, 4\n"
                             ".skip 16\n"
                             "lonely: .skip 16\n"
                             ".data\n"
                             ".globl some_data\n"
                             "some_data: .quad 0\n";

static const struct {
    uint64_t offset;  // from "base"
    const char *name;
} rows[] = {
    {0, "grab"},      {15, "grab"},     {16, "labelled"}, {24, "labelled"}, {31, "labelled"},
    {32, "sizeless"}, {47, "sizeless"}, {48, "outside"},  {52, "nested"},   {56, "outside"},
    {63, "outside"},  {80, "lonely"},   {95, "lonely"},
};

// So many more that the table is not sorted by comparisons alone.
static const char more[] = ".macro filler\n"
                           "filler\\@: .skip 16\n"
                           ".type filler\\@, @function\n"
                           ".size filler\\@, 16\n"
                           ".endm\n"
                           ".text\n"
                           ".rept 300\n"
                           "filler\n"
                           ".endr\n";

static void check_rows(const char *text) {
    write_source("names.s", text);
    assert_true(run("gcc -shared -nostdlib -o names.so names.s"));
    uint64_t base = address_of("names.so", "base");
    struct image image;
    assert_int_equal(image_open(&image, in_scratch("names.so")), IMAGE_OK);
    struct symtab symtab = {0};
    bool added;
    assert_true(symtab_add(&symtab, &image, SHT_SYMTAB, &added));
    assert_true(added);
    assert_true(symtab_add(&symtab, &image, SHT_DYNSYM, &added));
    assert_true(added);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct symtab_entry *entry = symtab_find(&symtab, base + rows[i].offset);
        assert_non_null(entry);
        assert_string_equal(entry->name, rows[i].name);
    }
    assert_null(symtab_find(&symtab, base - 1));
    assert_null(symtab_find(&symtab, 0));
    for (size_t i = 1; i < symtab.count; i++)
        assert_true(symtab.entries[i - 1].start <= symtab.entries[i].start);
    symtab_free(&symtab);
    image_close(&image);
}

static void closest_function_and_plainest_name_win(void **state) {
    (void)state;
    char text[sizeof more + sizeof source];
    check_rows(source);
    // before and behind the others
    snprintf(text, sizeof text, "%s%s", more, source);
    check_rows(text);
    snprintf(text, sizeof text, "%s%s", source, more);
    check_rows(text);
}

static void empty_table_finds_nothing(void **state) {
    (void)state;
    struct symtab symtab = {0};
    assert_null(symtab_find(&symtab, 0));
    symtab_free(&symtab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closest_function_and_plainest_name_win),
        cmocka_unit_test(empty_table_finds_nothing),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
