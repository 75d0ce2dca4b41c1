// SPDX-License-Identifier: Apache-2.0
// Functions of JavaScript as records of the recording (format.h, struct cairn_code): name, script,
// and the line of an instruction of their bytecode.
#ifndef RUNTIME_JS_FUNCTION_H
#define RUNTIME_JS_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/js/script.h"
#include "runtime/managed/memory.h"

enum { FUNCTIONS_SEEN = 16384 };
enum { FUNCTION_NAME_BYTES = 1 << 10, FUNCTION_FILE_BYTES = 4 << 10 };
enum { FUNCTION_BUFFER_BYTES = 256 << 10 };

// An instruction that this thread has seen. Objects move, and others take their places: it is
// believed as long as the words that say what the function is are the same.
struct function_seen {
    uint64_t shared, facts;
    int32_t offset;
    uintptr_t pc;  // the pseudo address (FRAME_PYTHON)
};

// What one thread needs. One owner.
struct function_reader {
    struct function_seen seen[FUNCTIONS_SEEN];
    struct script_reader scripts;
    uint64_t record[(FUNCTION_NAME_BYTES + FUNCTION_FILE_BYTES) / sizeof(uint64_t) + 4];
    uint8_t buffer[FUNCTION_BUFFER_BYTES];  // tables of V8, before they are used
    struct memory_reader memory;            // for what the thread's own frames reach
    bool is_nameless;                       // set when there was no room for a record
};

enum { FUNCTION_NO_OFFSET = INT32_MIN };

// The pseudo address of an instruction of a function: `shared` is V8's SharedFunctionInfo,
// `bytecodes` its BytecodeArray. Without a position there the line is 0: V8 makes the table of them
// when somebody asks for one (tests/e2e/js_frames.py). 0: there is no such function.
uintptr_t function_find(struct function_reader *reader, uint64_t shared, uint64_t bytecodes,
                        int32_t offset);

// The bytecode that a function has; 0: none.
uint64_t function_bytecodes(struct function_reader *reader, uint64_t shared);

// Copies a ByteArray into the buffer; its bytes, cut. `first`: where its content begins.
uint32_t function_read_bytes(struct function_reader *reader, uint64_t array, int32_t first);

#endif
