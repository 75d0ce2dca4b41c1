// SPDX-License-Identifier: Apache-2.0
// Which frames of the interpreter stand for a place in optimized code: V8's translations, by which
// it goes on in the interpreter when an assumption fails.
#ifndef RUNTIME_JS_TRANSLATION_H
#define RUNTIME_JS_TRANSLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A function at an instruction of its bytecode.
struct translation_frame {
    int32_t offset;    // TRANSLATION_BUILTIN: it is one of V8's own
    uint32_t literal;  // its number, or a function's that is of it, in the literals of the code
};

enum { TRANSLATION_BUILTIN = INT32_MAX, TRANSLATION_FRAMES = 64 };

// Reads the translation at `index` of a table, outermost frame first; how many. 0: none, or it is
// not understood. `version`: of V8 (engine.h).
uint32_t translation_read(uint16_t version, const uint8_t *table, size_t size, uint32_t index,
                          struct translation_frame frames[TRANSLATION_FRAMES]);

// True if translations of this version are known.
bool translation_is_known(uint16_t version);

#endif
