// SPDX-License-Identifier: Apache-2.0
// Python's code objects as records of the recording (format.h, struct cairn_code), each once.
#ifndef RUNTIME_PYTHON_CODE_H
#define RUNTIME_PYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"
#include "runtime/python/layout.h"

enum { CODES_SEEN = 1024, LINES_SEEN = 4096 };
enum { CODE_FUNCTION_BYTES = 1 << 10, CODE_FILE_BYTES = 4 << 10, CODE_TABLE_BYTES = 256 << 10 };

// A code object that this thread has seen.
struct code_seen {
    uintptr_t code;
    uint64_t facts;   // hash of what its fields said
    uint32_t number;  // its record's offset in CODES, by CAIRN_CODE_ALIGN
};

// An instruction of one.
struct line_seen {
    uintptr_t instruction;
    uint64_t facts;  // of its code
    uintptr_t pc;    // pseudo address (FRAME_PYTHON)
};

// What one thread needs to look codes up. One owner.
struct code_reader {
    struct line_seen lines[LINES_SEEN];
    struct code_seen codes[CODES_SEEN];
    uint64_t
        record[(CODE_FUNCTION_BYTES + CODE_FILE_BYTES) / sizeof(uint64_t) + 4];  // in the making
    uint8_t text[CODE_TABLE_BYTES];  // of Python, before it is used
    struct memory_reader memory;     // its caution is set by the caller
    bool is_nameless;                // set when there was no room for a code
};

// The interpreter that is read.
extern HIDDEN struct python_objects code_types;
extern HIDDEN struct python_layout code_layout;

// The pseudo address of the instruction at an address in a code object. Its record is written if it
// is new; it is CODE_UNKNOWN if the address is that of no code object, or there is no room. 0: it
// is nothing that anybody wrote.
uintptr_t code_find(struct code_reader *reader, uintptr_t code, uintptr_t instruction);

#endif
