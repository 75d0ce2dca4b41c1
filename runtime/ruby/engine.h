// SPDX-License-Identifier: Apache-2.0
// Places at which Ruby (MRI) keeps what a stack needs, as byte offsets on 64-bit machines: by the
// version that it says itself, from the headers of that version. Its exported variables and the
// code of two functions say where its threads keep their contexts, and where its symbols and the
// number of its collections are.
#ifndef RUNTIME_RUBY_ENGINE_H
#define RUNTIME_RUBY_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/linker.h"
#include "runtime/sys/sys.h"

// The same in all versions that are read.
enum {
    RUBY_CONTEXT_WORDS = 3,  // of rb_execution_context_t: stack of values, its length in words,
                             // innermost frame

    RUBY_FRAME_WORDS = 5,  // of rb_control_frame_t, as the next ones say
    RUBY_FRAME_PC = 0,
    RUBY_FRAME_CODE = 2,         // rb_iseq_t
    RUBY_FRAME_ENVIRONMENT = 4,  // its place of flags

    RUBY_ENVIRONMENT_WORDS = 3,  // method or cref, outer environment, flags
    RUBY_ENVIRONMENT_BEFORE = 16,
    RUBY_ENVIRONMENT_IS_LOCAL = 2,  // a flag: no outer one
    RUBY_ENVIRONMENT_TAG = 3,
    RUBY_FRAME_IS_TOP = 0x20,  // a flag: the call of Ruby's loop began with this frame
    RUBY_FRAME_IS_NATIVE = 0x80,
    RUBY_FRAME_KIND = 0x7fff0001,
    RUBY_FRAME_KIND_FUNCTION = 0x55550001,  // a method in C
    RUBY_FRAME_KIND_DUMMY = 0x79990001,     // outermost of each stack

    RUBY_TYPE_MASK = 0x1f,  // of an object's first word
    RUBY_TYPE_CLASS = 2,
    RUBY_TYPE_MODULE = 3,
    RUBY_TYPE_STRING = 5,
    RUBY_TYPE_ARRAY = 7,
    RUBY_TYPE_INTERNAL = 0x1a,
    RUBY_TYPE_INCLUDED = 0x1c,  // stands for a module among the ancestors of a class
    RUBY_INTERNAL_SHIFT = 12,
    RUBY_INTERNAL_MASK = 0xf,
    RUBY_INTERNAL_SPECIAL = 2,  // variables of a frame, with its method in the word behind
    RUBY_INTERNAL_METHOD = 6,   // rb_callable_method_entry_t
    RUBY_IS_SINGLETON = 0x1000,
    RUBY_IS_APART = 0x2000,     // of a text: it does not lie in the object
    RUBY_IS_EMBEDDED = 0x2000,  // of an array: it does

    RUBY_OBJECT_CLASS = 8,
    RUBY_CLASS_ABOVE = 16,
    RUBY_ARRAY = 16,           // embedded
    RUBY_ARRAY_LENGTH = 16,    // not embedded
    RUBY_ARRAY_ELEMENTS = 32,  // not embedded

    RUBY_METHOD_WORDS = 2,  // of an entry, from the second on: class, definition
    RUBY_METHOD_CLASS = 8,
    RUBY_DEFINITION_KIND_MASK = 0xf,
    RUBY_DEFINITION_IS_CODE = 0,  // written in Ruby
    RUBY_DEFINITION_NAME = 32,

    RUBY_CODE_BODY = 16,  // of rb_iseq_t
    RUBY_BODY_KIND_METHOD = 1,
    RUBY_NAME_SHIFT = 4,  // of an ID that is no operator's
    RUBY_NAMES_UNIT = 512,
    RUBY_NAMES_LIST = 16,  // in its table of symbols

    RUBY_LINE_BYTES = 12,  // of an entry of a code's table of lines: line first
};

struct ruby_layout {
    uint16_t version;          // major << 8 | minor
    uint16_t frame_bytes;      // of rb_control_frame_t
    uint16_t body_location;    // in an iseq's body: path, base label, label
    uint16_t body_lines;       // .insns_info
    uint16_t body_local;       // .local_iseq
    uint16_t text;             // embedded: where it begins
    uint16_t operators;        // tLAST_OP_ID: higher IDs are numbers with a kind
    uint16_t class_extra;      // in RClass: where the address of what else it has is
    uint16_t extra_variables;  // there: table of variables by ID
};

enum { RUBY_UNLOCKED_MOST = 4 };

struct ruby_code_range {
    uintptr_t start, end;
};

struct ruby_engine {
    struct ruby_layout layout;
    struct linker_local context;                          // ruby_current_ec
    uintptr_t loop, loop_end;                             // rb_vm_exec
    struct ruby_code_range unlocked[RUBY_UNLOCKED_MOST];  // run native code without Ruby's lock
    uintptr_t symbols;                                    // ruby_global_symbols; 0: unknown
    uintptr_t machine;                                    // ruby_current_vm_ptr
    uint32_t machine_objects;      // where that keeps its objects' space; 0: unknown
    uint32_t objects_collections;  // and that how often it was collected
};

extern HIDDEN struct ruby_engine engine_ruby;

enum ruby_state { RUBY_ABSENT, RUBY_UNKNOWN, RUBY_READ };

// Asks the modules' symbols which Ruby is there.
enum ruby_state engine_ruby_find(uint16_t *version);

// The layout of a version; NULL: it is not known.
const struct ruby_layout *engine_ruby_layout(uint32_t version);

// The address that the code of a function says whose whole work is to load a number of 4 bytes from
// there; 0: it is another one.
uintptr_t engine_ruby_loaded(const uint8_t *code);

// The offsets that the code of a function says which loads from an address, there from another one,
// and so on: "mov ADDRESS(%rip), %rax; mov (%rax), %rax; mov FIRST(%rax), %rax; mov SECOND(%rax),
// %rax; ret". False: it is another one.
bool engine_ruby_offsets(const uint8_t *code, uint32_t *first, uint32_t *second);

// Tells code that runs native code without Ruby's lock, so that Ruby goes on meanwhile.
bool engine_ruby_is_unlocked(uintptr_t pc);

static inline bool engine_ruby_is_loop(uintptr_t pc) {
    return pc - engine_ruby.loop < engine_ruby.loop_end - engine_ruby.loop;
}

#endif
