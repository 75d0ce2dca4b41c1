// SPDX-License-Identifier: Apache-2.0
// How many bytes V8's bytecodes take, with operands of one, two and four bytes.
#ifndef RUNTIME_JS_BYTECODES_H
#define RUNTIME_JS_BYTECODES_H

#include <stdbool.h>
#include <stdint.h>

enum { BYTECODES_SCALES = 3, BYTECODES_SIZES = BYTECODES_SCALES * 256 };

// True if the bytecodes of this version (engine.h) are known.
bool bytecodes_is_known(uint16_t version);

// The sizes of all of them at each scale, one scale after the other: of V8's own table at `place`,
// or, if that is 0, as they are known. How many bytecodes there are; 0: that is not known.
uint32_t bytecodes_read_sizes(uint16_t version, uint64_t place, uint8_t sizes[BYTECODES_SIZES]);

#endif
