// SPDX-License-Identifier: Apache-2.0
// Ruby's methods, blocks and files as records of the recording (format.h, struct cairn_code), each
// once.
#ifndef RUNTIME_RUBY_METHOD_H
#define RUNTIME_RUBY_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/ruby/engine.h"
#include "runtime/ruby/object.h"

enum { RUBY_METHODS_SEEN = 4096, RUBY_NAME_BYTES = 1 << 10 };

// A frame, as its words say.
struct ruby_frame {
    uint64_t pc;           // of the next instruction; 0: a method in C
    uint64_t code;         // rb_iseq_t
    uint64_t environment;  // its innermost one
    uint64_t flags;        // RUBY_FRAME_...
    uint64_t methods;      // hash of what the environments say of the method, the innermost first
};

// A place in code. It is the same if its words are, as long as Ruby did not collect: until then
// nothing is freed.
struct ruby_method_seen {
    uint64_t place, methods;
    uint64_t collection;  // number of that; 0: none
    uintptr_t pc;         // pseudo address (FRAME_PYTHON)
};

// Memory of one thread by which it looks methods up. One owner.
struct ruby_method_reader {
    struct ruby_method_seen seen[RUBY_METHODS_SEEN];
    uint64_t record[(RUBY_NAME_BYTES + RUBY_TEXT_BYTES) / sizeof(uint64_t) + 4];
    struct ruby_object_reader objects;
    struct memory_copies copies;
    uint64_t collection;           // number of the last one and one; 0: not known
    bool is_nameless;              // set when there was no room for a code
    struct managed_native native;  // of the event
};

// An event with these native frames begins: the pages of its memory, the number of collections.
void ruby_method_begin(struct ruby_method_reader *reader, struct managed_native native,
                       bool is_careful);

// The pseudo address of the method that a frame runs, at its line.
uintptr_t ruby_method_find(struct ruby_method_reader *reader, const struct ruby_frame *frame);

#endif
