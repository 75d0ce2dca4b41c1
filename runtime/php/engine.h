// SPDX-License-Identifier: Apache-2.0
// Places at which PHP keeps what a stack needs, as byte offsets on 64-bit machines: by the version
// that it says itself, from the headers of that version. The build for threads (ZTS) keeps its
// globals elsewhere, and is not read.
#ifndef RUNTIME_PHP_ENGINE_H
#define RUNTIME_PHP_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

// The same in all versions that are read.
enum {
    PHP_FRAME_WORDS = 7,  // of zend_execute_data, as the next ones say
    PHP_FRAME_OPLINE = 0,
    PHP_FRAME_FUNCTION = 3,
    PHP_FRAME_THIS = 4,
    PHP_FRAME_INFO = 5,  // type of `this`, and ZEND_CALL_...
    PHP_FRAME_PREVIOUS = 6,

    PHP_CALL_TOP = 1 << 17,  // the call of execute_ex began with this frame
    PHP_TYPE_MASK = 0xff,
    PHP_TYPE_OBJECT = 8,

    PHP_OP_LINE = 24,  // number of 4 bytes, then the code of one
    PHP_OP_HANDLE_EXCEPTION = 149,
    PHP_OP_EXTENDED = 20,    // of 4 bytes: of a built-in function that is called without a frame
    PHP_OP_FRAMELESS = 204,  // and the three that follow (8.4)
    PHP_OP_FRAMELESS_FORMS = 4,

    PHP_FUNCTION_WORDS = 3,  // type (one byte), name, class
    PHP_FUNCTION_INTERNAL = 1,
    PHP_FUNCTION_USER = 2,
    PHP_FUNCTION_CODE = 4,          // eval
    PHP_FUNCTION_FLAGS_SHIFT = 32,  // of its first word: ZEND_ACC_...
    PHP_FUNCTION_IS_CLOSURE = 1 << 22,
    PHP_FUNCTION_IS_MADE_UP = 1 << 18,  // for one call (ZEND_ACC_CALL_VIA_TRAMPOLINE)

    PHP_CLASS_NAME = 8,
    PHP_OBJECT_CLASS = 16,

    PHP_TEXT_WORDS = 3,  // count of references, hash (0: not known yet), length
    PHP_TEXT = 24,
};

struct php_layout {
    uint16_t version;             // major << 8 | minor
    uint16_t globals_frame;       // in executor_globals: .current_execute_data
    uint16_t globals_before;      // .opline_before_exception
    uint16_t function_file;       // in zend_op_array: .filename
    uint16_t function_last_line;  // .line_end, a number of 4 bytes
    uint16_t generator_frame;     // in zend_generator: .execute_data
    uint16_t generator_parent;    // .node.parent
};

struct php_engine {
    struct php_layout layout;
    uintptr_t globals;         // executor_globals
    uintptr_t generator;       // where the class of generators is: zend_ce_generator; 0: unknown
    uintptr_t frameless;       // zend_flf_functions; 0: all calls have frames
    uintptr_t loop, loop_end;  // execute_ex
    uintptr_t rare, rare_end;  // its rare part, which the compiler has set apart; 0: none
};

extern HIDDEN struct php_engine engine_php;

enum php_state { PHP_ABSENT, PHP_UNKNOWN, PHP_READ };

// Asks the modules' symbols which PHP is there.
enum php_state engine_php_find(uint16_t *version);

// The layout of a version; NULL: it is not known.
const struct php_layout *engine_php_layout(uint32_t version);

// Finds where the code begins and ends that a place is in, by the table of unwind information
// (.eh_frame_hdr): a compiler sets rare parts of a function apart. False: not known.
bool engine_php_part_of(const uint8_t *header, uintptr_t place, uintptr_t *start, uintptr_t *end);

static inline bool engine_php_is_loop(uintptr_t pc) {
    return pc - engine_php.loop < engine_php.loop_end - engine_php.loop ||
           pc - engine_php.rare < engine_php.rare_end - engine_php.rare;
}

#endif
