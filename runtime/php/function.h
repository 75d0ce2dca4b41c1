// SPDX-License-Identifier: Apache-2.0
// PHP's functions as records of the recording (format.h, struct cairn_code), each once.
#ifndef RUNTIME_PHP_FUNCTION_H
#define RUNTIME_PHP_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"
#include "runtime/php/engine.h"

enum { PHP_FUNCTIONS_SEEN = 4096, PHP_NAME_BYTES = 1 << 10, PHP_FILE_BYTES = 4 << 10 };

// A place in a function's code, or a built-in function.
struct php_function_seen {
    uint64_t place;
    uint64_t facts;  // hash of what its words said
    uintptr_t pc;    // pseudo address (FRAME_PYTHON)
};

// Memory of one thread by which it looks functions up. One owner.
struct php_function_reader {
    struct php_function_seen seen[PHP_FUNCTIONS_SEEN];
    uint64_t record[(PHP_NAME_BYTES + PHP_FILE_BYTES) / sizeof(uint64_t) + 4];  // in the making
    struct memory_reader memory;  // its caution is set by the caller
    bool is_nameless;             // set when there was no room for a code
    bool is_lasting;              // the function found last stays where it is until a request ends
    uint64_t built_in;  // the one that the function found last calls without a frame; 0: none
};

// The pseudo address of the function that a call runs (its words, zend_execute_data), at its line;
// 0: it is none. `type`: PHP_FUNCTION_...
uintptr_t php_function_find(struct php_function_reader *reader,
                            const uint64_t frame[PHP_FRAME_WORDS], uint8_t *type);

#endif
