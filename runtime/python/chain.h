// SPDX-License-Identifier: Apache-2.0
// The frames of Python code that a thread is in, as the interpreter has them linked.
#ifndef RUNTIME_PYTHON_CHAIN_H
#define RUNTIME_PYTHON_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"

// One frame of Python code.
struct link {
    uintptr_t frame, code, instruction;
    uintptr_t
        place;     // on the C stack: of the call of the interpreter's loop that runs it; 0: unknown
    uintptr_t pc;  // pseudo address (FRAME_PYTHON), or 0: it is not shown
};

// Reads the interpreter's functions from the dynamic linker. False if one is missing.
bool chain_find(void);

// This thread's chain, innermost first, by the layout of the interpreter; how many frames it has.
// Without the interpreter's lock memory is set to be careful.
uint32_t chain_read(struct memory_reader *memory, struct link *links, uint32_t limit);

// Where a native function begins and ends that runs one frame of Python code a call; 0: the chain
// knows places by itself.
extern HIDDEN uintptr_t chain_loop, chain_loop_end;

#endif
