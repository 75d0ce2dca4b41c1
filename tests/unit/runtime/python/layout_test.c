// SPDX-License-Identifier: Apache-2.0
// The rows for versions by types that describe themselves as theirs do, and otherwise; the row of
// 3.11 by its headers, where these are installed.
#include "runtime/python/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"

enum { TYPE_WORDS = 40, MEMBERS = 6, BASIC_SIZE = 4, MEMBERS_AT = 30, DEBUG_WORDS = 93 };

struct member {
    const char *name;
    uint64_t type, offset, flags;
    const char *text;
};

// An interpreter's types, and what it says of itself.
static uint64_t code[TYPE_WORDS], frame[TYPE_WORDS], text[TYPE_WORDS], bytes[TYPE_WORDS];
static struct member code_members[MEMBERS], frame_members[MEMBERS];
static uint64_t runtime[DEBUG_WORDS];

static struct python_objects objects(void) {
    return (struct python_objects){(uintptr_t)code, (uintptr_t)frame, (uintptr_t)text,
                                   (uintptr_t)bytes, (uintptr_t)runtime};
}

static void describe(uint64_t code_size, uint64_t text_size, const struct member *members) {
    memset(code, 0, sizeof code);
    memset(code_members, 0, sizeof code_members);
    for (size_t i = 0; members[i].name; i++) code_members[i] = members[i];
    frame_members[0] = (struct member){.name = "f_back", .offset = 24};
    frame_members[1] = (struct member){.name = "f_code", .offset = 32};
    code[BASIC_SIZE] = code_size;
    code[MEMBERS_AT] = (uintptr_t)code_members;
    frame[MEMBERS_AT] = (uintptr_t)frame_members;
    text[BASIC_SIZE] = text_size;
    bytes[BASIC_SIZE] = 33;
}

static const struct member old_members[] = {
    {.name = "co_argcount", .offset = 16},  {.name = "co_firstlineno", .offset = 40},
    {.name = "co_filename", .offset = 104}, {.name = "co_name", .offset = 112},
    {.name = "co_lnotab", .offset = 120},   {0}};
static const struct member members_310[] = {{.name = "co_firstlineno", .offset = 40},
                                            {.name = "co_filename", .offset = 104},
                                            {.name = "co_name", .offset = 112},
                                            {.name = "co_linetable", .offset = 120},
                                            {0}};
static const struct member members_311[] = {{.name = "co_firstlineno", .offset = 72},
                                            {.name = "co_filename", .offset = 112},
                                            {.name = "co_qualname", .offset = 128},
                                            {.name = "co_linetable", .offset = 136},
                                            {0}};
static const struct member members_312[] = {{.name = "co_firstlineno", .offset = 68},
                                            {.name = "co_filename", .offset = 112},
                                            {.name = "co_qualname", .offset = 128},
                                            {.name = "co_linetable", .offset = 136},
                                            {0}};

static const struct {
    uint32_t version;
    uint64_t code_size, text_size;
    const struct member *members;
    enum python_chain chain;
    enum python_lines lines;
} rows[] = {
    {0x030812f0, 176, 80, old_members, PYTHON_CHAIN_OBJECTS, PYTHON_LINES_CHANGES},
    {0x030902f0, 176, 80, old_members, PYTHON_CHAIN_OBJECTS, PYTHON_LINES_CHANGES},
    {0x030a0df0, 176, 80, members_310, PYTHON_CHAIN_OBJECTS, PYTHON_LINES_RANGES},
    {0x030b02f0, 184, 80, members_311, PYTHON_CHAIN_CALLS, PYTHON_LINES_POSITIONS},
    {0x030c01f0, 192, 64, members_312, PYTHON_CHAIN_ENTRIES_BY_CALL, PYTHON_LINES_POSITIONS},
};

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct python_objects types = objects();
        struct python_layout layout;
        describe(rows[i].code_size, rows[i].text_size, rows[i].members);
        assert_true(layout_find(rows[i].version, &types, &layout));
        assert_int_equal(layout.chain, rows[i].chain);
        assert_int_equal(layout.lines, rows[i].lines);
        // any word otherwise: another build
        text[BASIC_SIZE] += 8;
        assert_false(layout_find(rows[i].version, &types, &layout));
        text[BASIC_SIZE] -= 8;
        for (size_t j = 0; code_members[j].name; j++) {
            bool is_used = strcmp(code_members[j].name, "co_argcount") != 0;
            code_members[j].offset += 8;
            assert_int_equal(layout_find(rows[i].version, &types, &layout), !is_used);
            code_members[j].offset -= 8;
        }
        code[MEMBERS_AT] = 8;  // no memory
        assert_false(layout_find(rows[i].version, &types, &layout));
        types.code = 0;
        assert_false(layout_find(rows[i].version, &types, &layout));
    }
}

static void test_other_versions(void **state) {
    (void)state;
    struct python_objects types = objects();
    struct python_layout layout;
    describe(176, 80, old_members);
    const uint32_t others[] = {0, 0x02070000, 0x03070000, 0x030b02f0, 0x03100000, 0x04080000};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(layout_find(others[i], &types, &layout));
}

// As 3.14 says it.
static void describe_later(void) {
    static const struct {
        uint8_t word;
        uint16_t offset;
    } fields[] = {{26, 72}, {32, 8},   {33, 0}, {34, 56}, {36, 74}, {40, 112}, {42, 128}, {43, 136},
                  {44, 68}, {48, 208}, {51, 8}, {75, 16}, {76, 32}, {78, 32},  {79, 16},  {80, 40}};
    memset(runtime, 0xff, sizeof runtime);
    memcpy(runtime, "xdebugpy", 8);
    runtime[1] = 0x030e02f0;
    runtime[2] = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        runtime[fields[i].word] = fields[i].offset;
    describe(208, 64, members_312);
}

static void test_debug_offsets(void **state) {
    (void)state;
    struct python_objects types = objects();
    struct python_layout layout;
    describe_later();
    assert_true(layout_find(0x030e02f0, &types, &layout));
    assert_int_equal(layout.chain, PYTHON_CHAIN_ENTRIES);
    assert_int_equal(layout.state_frame, 72);
    assert_int_equal(layout.frame_kind, 74);
    assert_int_equal(layout.code_instructions, 208);
    assert_int_equal(layout.text_compact, 56);
    assert_false(layout_find(0x030d00f0, &types, &layout));
    assert_false(layout_find(0x030f00f0, &types, &layout));
    runtime[2] = 1;  // free-threaded
    assert_false(layout_find(0x030e02f0, &types, &layout));
    runtime[2] = 0;
    runtime[26] = 1 << 20;
    assert_false(layout_find(0x030e02f0, &types, &layout));
    runtime[26] = 71;
    assert_false(layout_find(0x030e02f0, &types, &layout));
    types.runtime = 8;
    assert_false(layout_find(0x030e02f0, &types, &layout));
}

// As the free-threaded 3.13 says it.
static void describe_free_threaded(void) {
    static const struct {
        uint8_t word;
        uint16_t offset;
    } fields[] = {{23, 72},  {29, 8},   {30, 0},  {31, 56},  {33, 70}, {35, 128},
                  {37, 144}, {38, 152}, {39, 84}, {43, 232}, {45, 24}, {65, 32},
                  {66, 48},  {68, 48},  {69, 32}, {70, 56}};
    memset(runtime, 0xff, sizeof runtime);
    memcpy(runtime, "xdebugpy", 8);
    runtime[1] = 0x030d05f0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        runtime[fields[i].word] = fields[i].offset;
    memset(text, 0, sizeof text);
    memset(bytes, 0, sizeof bytes);
    text[BASIC_SIZE + 2] = 80;
    bytes[BASIC_SIZE + 2] = 49;
}

static void test_free_threaded(void **state) {
    (void)state;
    struct python_objects types = objects();
    struct python_layout layout;
    describe_free_threaded();
    assert_true(layout_find(0x030d05f0, &types, &layout));
    assert_int_equal(layout.object_more, PYTHON_FREE_THREADED_MORE);
    assert_int_equal(layout.text_compact, 72);
    runtime[2] = 0;  // it says that it is another build
    assert_false(layout_find(0x030d05f0, &types, &layout));
    describe_free_threaded();
    runtime[45] = 8;
    assert_false(layout_find(0x030d05f0, &types, &layout));
    describe_free_threaded();
    bytes[BASIC_SIZE + 2] = 33;
    assert_false(layout_find(0x030d05f0, &types, &layout));
}

// Whatever lies there.
static void test_hostile(void **state) {
    (void)state;
    struct python_objects types = objects();
    struct python_layout layout;
    uint64_t seed = 3;
    for (int i = 0; i < 3000; i++) {
        uint64_t *const words[] = {code, text, runtime, (uint64_t *)code_members};
        describe_later();
        uint64_t *area = words[random_below(&seed, 4)];
        for (int j = 0; j < 8; j++) area[random_below(&seed, 28)] = random_next(&seed) >> 17;
        layout_find((uint32_t)(0x03080000 + (random_below(&seed, 8) << 16)), &types, &layout);
    }
}

#if __has_include(<python3.11/internal/pycore_frame.h>)
#define Py_BUILD_CORE 1
#include <python3.11/Python.h>
#include <python3.11/structmember.h>

#include <python3.11/internal/pycore_frame.h>

#define AT(structure, field) offsetof(structure, field)

static void test_headers(void **state) {
    (void)state;
    struct python_objects types = objects();
    struct python_layout layout;
    describe(184, 80, members_311);
    assert_true(layout_find(0x030b02f0, &types, &layout));
    assert_int_equal(layout.state_frame, AT(PyThreadState, cframe));
    assert_int_equal(layout.state_thread, AT(PyThreadState, thread_id));
    assert_int_equal(layout.frame_code, AT(_PyInterpreterFrame, f_code));
    assert_int_equal(layout.frame_previous, AT(_PyInterpreterFrame, previous));
    assert_int_equal(layout.frame_instruction, AT(_PyInterpreterFrame, prev_instr));
    assert_int_equal(layout.frame_kind, AT(_PyInterpreterFrame, is_entry));
    assert_int_equal(layout.code_first_line, AT(PyCodeObject, co_firstlineno));
    assert_int_equal(layout.code_file, AT(PyCodeObject, co_filename));
    assert_int_equal(layout.code_function, AT(PyCodeObject, co_qualname));
    assert_int_equal(layout.code_table, AT(PyCodeObject, co_linetable));
    assert_int_equal(layout.code_instructions, AT(PyCodeObject, co_code_adaptive));
    assert_int_equal(layout.text_ascii, sizeof(PyASCIIObject));
    assert_int_equal(layout.text_compact, sizeof(PyCompactUnicodeObject));
    assert_int_equal(PYTHON_OBJECT_TYPE, AT(PyObject, ob_type));
    assert_int_equal(PYTHON_OBJECT_LENGTH, AT(PyVarObject, ob_size));
    assert_int_equal(PYTHON_OBJECT_LENGTH, AT(PyASCIIObject, length));
    assert_int_equal(PYTHON_TEXT_HASH, AT(PyASCIIObject, hash));
    assert_int_equal(PYTHON_TEXT_STATE, AT(PyASCIIObject, state));
    assert_int_equal(PYTHON_BYTES, AT(PyBytesObject, ob_sval));
    assert_int_equal(TYPE_WORDS > MEMBERS_AT, 1);
    assert_int_equal(BASIC_SIZE * sizeof(uint64_t), AT(PyTypeObject, tp_basicsize));
    assert_int_equal(MEMBERS_AT * sizeof(uint64_t), AT(PyTypeObject, tp_members));
    assert_int_equal(sizeof(struct member), sizeof(struct PyMemberDef));
    assert_int_equal(AT(struct member, offset), AT(struct PyMemberDef, offset));
}

static void test_text_bits(void **state) {
    (void)state;
    PyASCIIObject head = {.state = {.kind = PyUnicode_4BYTE_KIND, .compact = 1, .ascii = 1}};
    uint32_t bits;
    _Static_assert(sizeof head.state == sizeof bits, "all bits in one word");
    memcpy(&bits, &head.state, sizeof bits);
    assert_int_equal(bits >> PYTHON_TEXT_KIND_SHIFT & PYTHON_TEXT_KIND_MASK, 4);
    assert_true(bits & PYTHON_TEXT_IS_COMPACT);
    assert_true(bits & PYTHON_TEXT_IS_ASCII);
    assert_int_equal(bits & ~(uint32_t)(PYTHON_TEXT_KIND_MASK << PYTHON_TEXT_KIND_SHIFT |
                                        PYTHON_TEXT_IS_COMPACT | PYTHON_TEXT_IS_ASCII),
                     0);
}
#else
static void test_headers(void **state) {
    (void)state;
    skip();
}
static void test_text_bits(void **state) {
    (void)state;
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),         cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_debug_offsets), cmocka_unit_test(test_free_threaded),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_headers),
        cmocka_unit_test(test_text_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
