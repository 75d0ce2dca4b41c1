// SPDX-License-Identifier: Apache-2.0
// Methods of Java as records of the recording (format.h, struct cairn_code): class and name, file,
// and the line of a bytecode.
#ifndef RUNTIME_JAVA_METHOD_H
#define RUNTIME_JAVA_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"

enum { METHODS_SEEN = 16384, METHOD_TEXT_BYTES = 1 << 10, METHOD_LINES_BYTES = 64 << 10 };
enum { METHOD_CONSTANT_BYTES = 64, METHOD_POOL_BYTES = 96 };

// What tells a method from another one at its address: the constant part's place, and how that and
// the pool of constants begin.
struct method_facts {
    uint64_t constant, pool;
    uint64_t constant_head[METHOD_CONSTANT_BYTES / 8], pool_head[METHOD_POOL_BYTES / 8];
};

// A bytecode that this thread has seen. `pc` is the pseudo address (FRAME_PYTHON).
struct method_seen {
    uint64_t method, where;   // of the bytecode
    uint64_t constant, pool;  // as of method_facts
    uintptr_t pc;
    uint64_t facts;  // hash of what its words said
};

// What one thread needs. One owner.
struct method_reader {
    struct method_seen seen[METHODS_SEEN];
    uint64_t record[(4 * METHOD_TEXT_BYTES) / sizeof(uint64_t)];
    uint8_t lines[METHOD_LINES_BYTES];
    struct memory_reader memory;  // for the stack, and for what was found by system calls before
    bool is_nameless;             // set when there was no room for a record
};

enum { METHOD_NO_BCI = UINT32_MAX };

// The pseudo address of a bytecode of the method at an address. It is that of unknown code where
// there is no such method.
uintptr_t method_find(struct method_reader *reader, uint64_t method, uint32_t bci);

// The same by the address of the bytecode; 0 and addresses that are not the method's: in no line.
uintptr_t method_find_at(struct method_reader *reader, uint64_t method, uint64_t instruction);

#endif
