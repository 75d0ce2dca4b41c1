// SPDX-License-Identifier: Apache-2.0
// The offsets are those of CPython 3.11's headers, where these are installed.
#include "runtime/python/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if __has_include(<python3.11/internal/pycore_frame.h>)
#define Py_BUILD_CORE 1
#include <python3.11/Python.h>

#include <python3.11/internal/pycore_frame.h>

#define AT(structure, field) offsetof(structure, field)

static void test_state(void **state) {
    (void)state;
    assert_int_equal(PYTHON_STATE_CFRAME, AT(PyThreadState, cframe));
    assert_int_equal(PYTHON_CFRAME_FRAME, AT(_PyCFrame, current_frame));
    assert_int_equal(PYTHON_CFRAME_FRAME + sizeof(void *), AT(_PyCFrame, previous));
}

static void test_frame(void **state) {
    (void)state;
    size_t code = AT(_PyInterpreterFrame, f_code);
    assert_int_equal(PYTHON_FRAME_CODE, code);
    assert_int_equal(code + PYTHON_FRAME_CODE_PREVIOUS, AT(_PyInterpreterFrame, previous));
    assert_int_equal(code + PYTHON_FRAME_CODE_INSTRUCTION, AT(_PyInterpreterFrame, prev_instr));
    assert_int_equal(code + PYTHON_FRAME_CODE_IS_ENTRY, AT(_PyInterpreterFrame, is_entry));
    assert_int_equal(sizeof(((_PyInterpreterFrame *)0)->is_entry), 1);
    assert_true(PYTHON_FRAME_CODE_END > PYTHON_FRAME_CODE_IS_ENTRY);
}

static void test_code(void **state) {
    (void)state;
    size_t line = AT(PyCodeObject, co_firstlineno);
    assert_int_equal(PYTHON_CODE_FIRST_LINE, line);
    assert_int_equal(line + PYTHON_CODE_FILE, AT(PyCodeObject, co_filename));
    assert_int_equal(line + PYTHON_CODE_FUNCTION, AT(PyCodeObject, co_qualname));
    assert_int_equal(line + PYTHON_CODE_TABLE, AT(PyCodeObject, co_linetable));
    assert_int_equal(PYTHON_CODE_INSTRUCTIONS, AT(PyCodeObject, co_code_adaptive));
    assert_true(PYTHON_CODE_END >= PYTHON_CODE_TABLE + sizeof(void *));
}

static void test_texts(void **state) {
    (void)state;
    assert_int_equal(PYTHON_OBJECT_TYPE, AT(PyObject, ob_type));
    assert_int_equal(PYTHON_OBJECT_LENGTH, AT(PyVarObject, ob_size));
    assert_int_equal(PYTHON_OBJECT_LENGTH, AT(PyASCIIObject, length));
    assert_int_equal(PYTHON_TEXT_HASH, AT(PyASCIIObject, hash));
    assert_int_equal(PYTHON_TEXT_STATE, AT(PyASCIIObject, state));
    assert_int_equal(PYTHON_TEXT_ASCII, sizeof(PyASCIIObject));
    assert_int_equal(PYTHON_TEXT_COMPACT, sizeof(PyCompactUnicodeObject));
    assert_int_equal(PYTHON_BYTES, AT(PyBytesObject, ob_sval));
}

static void test_text_bits(void **state) {
    (void)state;
    PyASCIIObject text = {.state = {.kind = PyUnicode_4BYTE_KIND, .compact = 1, .ascii = 1}};
    uint32_t bits;
    _Static_assert(sizeof text.state == sizeof bits, "all bits in one word");
    memcpy(&bits, &text.state, sizeof bits);
    assert_int_equal(bits >> PYTHON_TEXT_KIND_SHIFT & PYTHON_TEXT_KIND_MASK, 4);
    assert_true(bits & PYTHON_TEXT_IS_COMPACT);
    assert_true(bits & PYTHON_TEXT_IS_ASCII);
    assert_int_equal(bits & ~(uint32_t)(PYTHON_TEXT_KIND_MASK << PYTHON_TEXT_KIND_SHIFT |
                                        PYTHON_TEXT_IS_COMPACT | PYTHON_TEXT_IS_ASCII),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state), cmocka_unit_test(test_frame),     cmocka_unit_test(test_code),
        cmocka_unit_test(test_texts), cmocka_unit_test(test_text_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void) {
    enum { NOT_HERE = 77 };
    puts("the headers of Python 3.11 (libpython3.11-dev) are not installed");
    return NOT_HERE;
}
#endif
