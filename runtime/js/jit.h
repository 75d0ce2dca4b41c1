// SPDX-License-Identifier: Apache-2.0
// Code that V8 compiled while the program runs, by an address in it: which instruction of which
// functions stands there, inlined ones too.
#ifndef RUNTIME_JS_JIT_H
#define RUNTIME_JS_JIT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/js/function.h"

enum { JIT_SEEN = 4096, JIT_FRAMES = 16 };

enum jit_kind {
    JIT_NONE,         // no code of a function: the interpreter, or V8's own
    JIT_BASELINE,     // as its bytecode
    JIT_OPTIMIZED,    // with what is inlined there
    JIT_INTERPRETER,  // a copy of the interpreter's entry
};

// Code that this thread has seen, by a return address into it. It is believed as long as the
// words by which it was found are the same.
struct jit_seen {
    uintptr_t pc;
    uint64_t object, map, code;  // 0: no code was found; the words at its beginning
    uint64_t facts;              // of its tables
    uint32_t uses;
    uint8_t kind, count;
    bool is_cut, lacks_lines;
    uintptr_t frames[JIT_FRAMES];  // pseudo addresses (FRAME_PYTHON), innermost first
};

// What one thread needs. One owner.
struct jit_reader {
    struct jit_seen seen[JIT_SEEN];
    struct function_reader functions;
};

// Whether the form of compiled code is known of a version of V8. Without it none is looked for.
bool jit_is_known(uint16_t version);

// The code at an address where a frame of this thread goes on. `shared` and `bytecodes` are what
// the frame has of its function, which baseline code needs. Valid until the next call.
const struct jit_seen *jit_find(struct jit_reader *reader, uintptr_t pc, uint64_t shared,
                                uint64_t bytecodes);

#endif
