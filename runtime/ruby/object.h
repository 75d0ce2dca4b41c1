// SPDX-License-Identifier: Apache-2.0
// Ruby's objects as far as names need them: texts, symbols, paths of classes.
#ifndef RUNTIME_RUBY_OBJECT_H
#define RUNTIME_RUBY_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/managed/memory.h"

enum { RUBY_TEXT_BYTES = 4 << 10 };

// One owner.
struct ruby_object_reader {
    struct memory_reader memory;
    uint64_t words[RUBY_TEXT_BYTES / sizeof(uint64_t) + 2];  // of a text
    uint64_t path_name, attached_name;  // IDs of what classes keep; 0: not met yet
};

// The type of an object, RUBY_TYPE_... with what else its first word says; 0: it is none.
uint64_t ruby_object_flags(struct ruby_object_reader *reader, uint64_t object);

static inline bool ruby_object_is(uint64_t flags, uint64_t type) {
    const uint64_t type_mask = 0x1f;
    return (flags & type_mask) == type;
}

// Copies a text, cut to `most` bytes, up to a NUL; the bytes written. 0: it is no text.
size_t ruby_object_text(struct ruby_object_reader *reader, uint64_t object, size_t most,
                        uint8_t *out);

// The same of the text of a symbol (its ID).
size_t ruby_object_symbol(struct ruby_object_reader *reader, uint64_t name, size_t most,
                          uint8_t *out);

// An element of an array; 0: there is none.
uint64_t ruby_object_element(struct ruby_object_reader *reader, uint64_t array, uint64_t index);

// "Class#", "Class." of its own methods, "#<Class>." of those of one object: copied like a text. 0:
// the class has no name.
size_t ruby_object_class(struct ruby_object_reader *reader, uint64_t class, size_t most,
                         uint8_t *out);

#endif
