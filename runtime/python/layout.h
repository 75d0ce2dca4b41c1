// SPDX-License-Identifier: Apache-2.0
// Where CPython keeps what a stack needs, as byte offsets on 64-bit machines: 3.8 to 3.12 by a
// table, later ones by what they say of themselves (_Py_DebugOffsets, at the start of _PyRuntime).
// What is the same in all of them is an enumeration here, and checked too.
#ifndef RUNTIME_PYTHON_LAYOUT_H
#define RUNTIME_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

// Offsets in objects; those of the free-threaded build, whose heads are larger, are
// python_layout.object_more further on.
enum {
    PYTHON_OBJECT_TYPE = 8,     // PyObject.ob_type, behind the count of references
    PYTHON_OBJECT_LENGTH = 16,  // PyVarObject.ob_size, PyASCIIObject.length
    PYTHON_TEXT_HASH = 24,      // PyASCIIObject.hash
    PYTHON_TEXT_STATE = 32,     // PyASCIIObject.state, as PYTHON_TEXT_...
    PYTHON_BYTES = 32,          // PyBytesObject.ob_sval

    PYTHON_TEXT_KIND_SHIFT = 2,  // bytes of a character, 3 bits
    PYTHON_TEXT_KIND_MASK = 7,
    PYTHON_TEXT_IS_COMPACT = 1 << 5,
    PYTHON_TEXT_IS_ASCII = 1 << 6,
};

// How the frames of a thread are linked, from its state on.
enum python_chain {
    // 3.8 to 3.10: objects, each run by its own call of the interpreter's loop.
    PYTHON_CHAIN_OBJECTS,
    // 3.11: a call of the loop has a _PyCFrame on the C stack. It leads to the innermost of the
    // frames that this call runs; they are linked outwards up to the entry frame, with which it was
    // called.
    PYTHON_CHAIN_CALLS,
    // From 3.12 on all are linked, and a call of the loop has a frame without code, its entry, on
    // the C stack. 3.12 still has _PyCFrame between the state and the first.
    PYTHON_CHAIN_ENTRIES,
    PYTHON_CHAIN_ENTRIES_BY_CALL,
};

// Forms of the table that leads from instructions to lines.
enum python_lines {
    PYTHON_LINES_CHANGES,    // 3.8, 3.9: co_lnotab
    PYTHON_LINES_RANGES,     // 3.10: pairs of bytes
    PYTHON_LINES_POSITIONS,  // from 3.11 on: with columns
};

enum { PYTHON_FREE_THREADED_MORE = 16 };

struct python_layout {
    enum python_chain chain;
    enum python_lines lines;
    uint16_t state_frame;        // in PyThreadState: .frame, .cframe or .current_frame
    uint16_t state_thread;       // .thread_id; 0: a thread knows its own state without it (3.12)
    uint16_t frame_code;         // in the frame: .f_code or .f_executable
    uint16_t frame_previous;     // .f_back or .previous
    uint16_t frame_instruction;  // .prev_instr or .instr_ptr; of objects .f_lasti
    uint16_t frame_kind;         // .is_entry or .owner, a byte
    uint16_t unit_bytes;         // of objects: what .f_lasti counts
    uint16_t code_first_line;    // in PyCodeObject: .co_firstlineno
    uint16_t code_file;          // .co_filename
    uint16_t code_function;      // .co_qualname; before 3.11 there is .co_name only
    uint16_t code_table;         // .co_linetable or .co_lnotab
    uint16_t code_instructions;  // .co_code_adaptive; 0: they are elsewhere
    uint16_t text_ascii;         // size of PyASCIIObject: where an ASCII text has its characters
    uint16_t text_compact;       // of PyCompactUnicodeObject: where others have theirs
    uint16_t object_more;        // PYTHON_FREE_THREADED_MORE or 0
};

// Types and the runtime's state, as addresses; 0: not exported.
struct python_objects {
    uintptr_t code, frame, text, bytes;  // PyCode_Type, PyFrame_Type, PyUnicode_Type, PyBytes_Type
    uintptr_t runtime;                   // _PyRuntime
};

// The layout of a version (Py_Version). False where it is not known, and where the interpreter's
// own description of its objects does not agree with it: another build. Of free-threaded ones only
// 3.13's is known: later ones have copies of instructions for each thread.
bool layout_find(uint32_t version, const struct python_objects *objects,
                 struct python_layout *layout);

#endif
