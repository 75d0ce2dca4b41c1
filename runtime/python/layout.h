// SPDX-License-Identifier: Apache-2.0
// Where CPython 3.11 keeps what a stack needs, as byte offsets on 64-bit machines.
// tests/unit/runtime/python/layout_test.c compares them with Python's own headers.
//
// A call of the interpreter's loop has a _PyCFrame on the C stack. It leads to the innermost of the
// Python frames that this call of the loop runs; they are linked outwards up to the entry frame,
// with which the loop was called.
#ifndef RUNTIME_PYTHON_LAYOUT_H
#define RUNTIME_PYTHON_LAYOUT_H

enum {
    PYTHON_STATE_CFRAME = 56,  // PyThreadState.cframe

    PYTHON_CFRAME_FRAME = 8,  // _PyCFrame.current_frame, then .previous

    PYTHON_FRAME_CODE = 32,           // _PyInterpreterFrame.f_code; what follows is relative to it
    PYTHON_FRAME_CODE_PREVIOUS = 16,  // .previous
    PYTHON_FRAME_CODE_INSTRUCTION = 24,  // .prev_instr
    PYTHON_FRAME_CODE_IS_ENTRY = 36,     // .is_entry, one byte
    PYTHON_FRAME_CODE_END = 40,

    PYTHON_OBJECT_TYPE = 8,     // PyObject.ob_type, behind the count of references
    PYTHON_OBJECT_LENGTH = 16,  // PyVarObject.ob_size, PyASCIIObject.length

    PYTHON_CODE_FIRST_LINE = 72,  // PyCodeObject.co_firstlineno; what follows is relative to it
    PYTHON_CODE_FILE = 40,        // .co_filename
    PYTHON_CODE_FUNCTION = 56,    // .co_qualname
    PYTHON_CODE_TABLE = 64,       // .co_linetable
    PYTHON_CODE_END = 72,
    PYTHON_CODE_INSTRUCTIONS = 184,  // PyCodeObject.co_code_adaptive

    PYTHON_TEXT_HASH = 24,     // PyASCIIObject.hash
    PYTHON_TEXT_STATE = 32,    // PyASCIIObject.state, as PYTHON_STATE_...
    PYTHON_TEXT_ASCII = 48,    // characters of a text that is compact and ASCII
    PYTHON_TEXT_COMPACT = 72,  // of one that is compact only
    PYTHON_BYTES = 32,         // PyBytesObject.ob_sval

    PYTHON_TEXT_KIND_SHIFT = 2,  // bytes of a character, 3 bits
    PYTHON_TEXT_KIND_MASK = 7,
    PYTHON_TEXT_IS_COMPACT = 1 << 5,
    PYTHON_TEXT_IS_ASCII = 1 << 6,
};

#endif
