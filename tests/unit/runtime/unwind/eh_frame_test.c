// SPDX-License-Identifier: Apache-2.0
// Modules made by hand: each instruction of call frame information, also those that compilers
// hardly use, and entries that must be refused. Real files are the oracle test's.
#include "runtime/unwind/eh_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MODULE_MAX = 512, INSTRUCTIONS_MAX = 64, CODE = 0x1000, CODE_BYTES = 0x100, HDR_BYTES = 20 };

struct bytes {
    uint8_t length;
    uint8_t bytes[INSTRUCTIONS_MAX];
};
#define BYTES(...)                                                                                 \
    {                                                                                              \
        sizeof((uint8_t[]){__VA_ARGS__}), {                                                        \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

// What is put into a module. The common part's instructions are CFA = rsp + 8, return at CFA - 8,
// unless given.
struct plan {
    const char *augmentation;
    struct bytes augmentation_data;
    struct bytes common, entry;
    uint8_t version, code_factor;
};

struct module {
    uint8_t bytes[MODULE_MAX];
    size_t size;
};

static void put(struct module *module, const void *bytes, size_t count) {
    assert_true(module->size + count <= MODULE_MAX);
    memcpy(module->bytes + module->size, bytes, count);
    module->size += count;
}

static void put_byte(struct module *module, uint8_t byte) {
    put(module, &byte, 1);
}

static void put_word(struct module *module, uint32_t word) {
    put(module, &word, sizeof word);
}

// Fills in the length of the part that began at `start`.
static void part_end(struct module *module, size_t start) {
    uint32_t length = (uint32_t)(module->size - start - 4);
    memcpy(module->bytes + start, &length, sizeof length);
}

static void put_common(struct module *module, const struct plan *plan) {
    static const struct bytes usual = BYTES(0x0c, 7, 8, 0x80 | 16, 1);
    const struct bytes *common = plan->common.length ? &plan->common : &usual;
    const char *augmentation = plan->augmentation ? plan->augmentation : "zR";
    static const struct bytes pc_relative = BYTES(1, 0x1b);
    const struct bytes *data =
        plan->augmentation_data.length ? &plan->augmentation_data : &pc_relative;
    size_t start = module->size;
    put_word(module, 0);
    put_word(module, 0);
    put_byte(module, plan->version ? plan->version : 1);
    put(module, augmentation, strlen(augmentation) + 1);
    put_byte(module, plan->code_factor ? plan->code_factor : 1);
    put_byte(module, 0x78);  // data factor -8
    put_byte(module, 16);    // return address
    put(module, data->bytes, data->length);
    put(module, common->bytes, common->length);
    part_end(module, start);
}

// Header, common part, entry. Code lies CODE bytes behind the module's start.
static void module_make(struct module *module, const struct plan *plan) {
    static const uint8_t hdr[] = {1, 0x1b, 0x03, 0x3b};
    module->size = 0;
    put(module, hdr, sizeof hdr);
    put_word(module, HDR_BYTES - 4);
    put_word(module, 1);
    put_word(module, CODE);
    put_word(module, 0);
    put_common(module, plan);
    uint32_t entry = (uint32_t)module->size;
    memcpy(module->bytes + 16, &entry, sizeof entry);
    put_word(module, 0);
    put_word(module, entry + 4 - HDR_BYTES);
    put_word(module, CODE - (uint32_t)module->size);
    put_word(module, CODE_BYTES);
    put_byte(module, 0);
    put(module, plan->entry.bytes, plan->entry.length);
    part_end(module, entry);
}

// Looks in a copy of exactly the module's size.
static bool find(const struct plan *plan, uintptr_t offset, struct row *row) {
    struct module module;
    module_make(&module, plan);
    uint8_t *copy = malloc(module.size);
    memcpy(copy, module.bytes, module.size);
    struct row_source source = {copy, copy + module.size, copy};
    bool is_found = row_find(&source, (uintptr_t)copy + CODE + offset, row);
    free(copy);
    return is_found;
}

static struct row row_at(const struct plan *plan, uintptr_t offset) {
    struct row row;
    assert_true(find(plan, offset, &row));
    return row;
}

static void check_cfa(const struct plan *plan, uintptr_t offset, uint32_t number, int64_t value) {
    struct row row = row_at(plan, offset);
    assert_false(row.is_cfa_expression);
    assert_int_equal(row.cfa_register, number);
    assert_int_equal(row.cfa_offset, value);
}

static void test_bounds_of_an_entry(void **state) {
    (void)state;
    struct row row;
    struct plan plan = {.version = 1};
    check_cfa(&plan, 0, 7, 8);
    check_cfa(&plan, CODE_BYTES - 1, 7, 8);
    assert_false(find(&plan, CODE_BYTES, &row));
    assert_false(find(&plan, (uintptr_t)-1, &row));
    assert_int_equal(row_at(&plan, 0).ret.how, ROW_AT_CFA);
    assert_int_equal(row_at(&plan, 0).ret.offset, -8);
    assert_int_equal(row_at(&plan, 0).frame.how, ROW_SAME);
}

static void test_advances(void **state) {
    (void)state;
    // advance 4; offset 16; advance1 0x10; offset 24; advance2 0x20; 32; advance4 0x30; 40
    struct plan plan = {.entry = BYTES(0x44, 0x0e, 16, 0x02, 0x10, 0x0e, 24, 0x03, 0x20, 0, 0x0e,
                                       32, 0x04, 0x30, 0, 0, 0, 0x0e, 40)};
    const uintptr_t borders[] = {0, 4, 0x14, 0x34, 0x64, CODE_BYTES};
    for (int i = 0; i < 5; i++) {
        check_cfa(&plan, borders[i], 7, 8 + 8 * i);
        check_cfa(&plan, borders[i + 1] - 1, 7, 8 + 8 * i);
    }
    plan.code_factor = 2;
    check_cfa(&plan, 7, 7, 8);
    check_cfa(&plan, 8, 7, 16);
}

static void test_ways_to_define_the_cfa(void **state) {
    (void)state;
    const struct plan plans[] = {
        {.entry = BYTES(0x0c, 6, 0x90, 0x01)},           // 6, 144
        {.entry = BYTES(0x12, 6, 0x7e)},                 // signed and factored: -2 * -8
        {.entry = BYTES(0x0d, 6)},                       // register alone
        {.entry = BYTES(0x13, 0x7d)},                    // offset alone, -3 * -8
        {.entry = BYTES(0x0e, 0xff, 0x7f)},              // 16383
        {.entry = BYTES(0x0f, 2, 0x77, 0, 0x0c, 7, 8)},  // an expression, then a register again
        {.entry = BYTES(0x0e, 56, 0x0f, 2, 0x77, 0, 0x0d, 7)},  // the offset from before
    };
    const struct {
        uint32_t number;
        int64_t offset;
    } wanted[] = {{6, 144}, {6, 16}, {6, 8}, {7, 24}, {7, 16383}, {7, 8}, {7, 56}};
    for (int i = 0; i < 7; i++) check_cfa(&plans[i], 0, wanted[i].number, wanted[i].offset);
}

static void test_ways_to_save_a_register(void **state) {
    (void)state;
    const struct {
        struct plan plan;
        enum row_how how;
        int64_t offset;
    } cases[] = {
        {{.entry = BYTES(0x86, 2)}, ROW_AT_CFA, -16},
        {{.entry = BYTES(0x05, 6, 3)}, ROW_AT_CFA, -24},
        {{.entry = BYTES(0x11, 6, 0x7f)}, ROW_AT_CFA, 8},
        {{.entry = BYTES(0x2f, 6, 2)}, ROW_AT_CFA, 16},
        {{.entry = BYTES(0x86, 2, 0x08, 6)}, ROW_SAME, 0},
        {{.entry = BYTES(0x86, 2, 0x07, 6)}, ROW_UNDEFINED, 0},
        {{.entry = BYTES(0x86, 2, 0xc6)}, ROW_SAME, 0},
        {{.entry = BYTES(0x86, 2, 0x06, 6)}, ROW_SAME, 0},
        {{.entry = BYTES(0x09, 6, 3)}, ROW_UNSUPPORTED, 0},
        {{.entry = BYTES(0x14, 6, 3)}, ROW_UNSUPPORTED, 0},
        {{.entry = BYTES(0x15, 6, 0x7f)}, ROW_UNSUPPORTED, 0},
        {{.entry = BYTES(0x16, 6, 2, 0x77, 0)}, ROW_UNSUPPORTED, 0},
        {{.entry = BYTES(0x10, 6, 2, 0x77, 0)}, ROW_AT_EXPRESSION, 0},
        {{.entry = BYTES(0x83, 2, 0x8c, 3, 0x2e, 16, 0x2d, 0)}, ROW_SAME, 0},
        // the common part saves it, the entry changes that, then restores
        {{.common = BYTES(0x0c, 7, 8, 0x90, 1, 0x86, 5), .entry = BYTES(0x86, 2, 0xc6)},
         ROW_AT_CFA,
         -40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct row row = row_at(&cases[i].plan, 0);
        assert_int_equal(row.frame.how, cases[i].how);
        if (row.frame.how == ROW_AT_CFA) assert_int_equal(row.frame.offset, cases[i].offset);
        assert_int_equal(row.ret.how, ROW_AT_CFA);
        assert_int_equal(row.ret.offset, -8);
    }
}

static void test_remembered_rows(void **state) {
    (void)state;
    // remember; offset 16; rbp saved; advance 8; recall
    struct plan plan = {.entry = BYTES(0x0a, 0x0e, 16, 0x86, 2, 0x48, 0x0b)};
    struct row row;
    check_cfa(&plan, 0, 7, 16);
    assert_int_equal(row_at(&plan, 7).frame.how, ROW_AT_CFA);
    check_cfa(&plan, 8, 7, 8);
    assert_int_equal(row_at(&plan, 8).frame.how, ROW_SAME);
    plan = (struct plan){.entry = BYTES(0x0b)};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){.entry = BYTES(0x0a, 0x0a, 0x0a, 0x0a, 0x0e, 16, 0x0b, 0x0b, 0x0b, 0x0b)};
    check_cfa(&plan, 0, 7, 8);
}

static void test_augmentations(void **state) {
    (void)state;
    struct row row;
    struct plan plan = {.augmentation = "zRS"};
    assert_true(row_at(&plan, 0).is_signal_frame);
    plan = (struct plan){.augmentation = "zPLR",
                         .augmentation_data = BYTES(7, 0x1b, 1, 2, 3, 4, 0x1b, 0x1b)};
    check_cfa(&plan, 0, 7, 8);
    plan = (struct plan){.version = 3};
    check_cfa(&plan, 0, 7, 8);
    plan = (struct plan){.version = 2};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){.augmentation = "eh"};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){.augmentation = "zR", .augmentation_data = BYTES(1, 0x5b)};
    assert_false(find(&plan, 0, &row));
}

// Lengths and factors at the limits of arithmetic.
static void test_absurd_numbers(void **state) {
    (void)state;
    struct row row;
    struct plan plan = {.augmentation_data = BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                   0xff, 0x01, 0x1b)};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){
        .entry = BYTES(0x2f, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)};
    find(&plan, 0, &row);
    plan = (struct plan){
        .entry = BYTES(0x12, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f)};
    find(&plan, 0, &row);
    plan = (struct plan){.entry = BYTES(0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x77, 0)};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){.entry = BYTES(0x10, 6, 9, 0x77, 0)};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){.entry = BYTES(0x0e)};
    assert_false(find(&plan, 0, &row));
    plan = (struct plan){.entry = BYTES(0x3f)};
    assert_false(find(&plan, 0, &row));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_of_an_entry),
        cmocka_unit_test(test_advances),
        cmocka_unit_test(test_ways_to_define_the_cfa),
        cmocka_unit_test(test_ways_to_save_a_register),
        cmocka_unit_test(test_remembered_rows),
        cmocka_unit_test(test_augmentations),
        cmocka_unit_test(test_absurd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
