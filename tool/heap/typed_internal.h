// SPDX-License-Identifier: Apache-2.0
// What the files of typed.h share.
#ifndef TOOL_HEAP_TYPED_INTERNAL_H
#define TOOL_HEAP_TYPED_INTERNAL_H

#include "tool/heap/frames.h"
#include "tool/heap/read_window.h"
#include "tool/heap/references.h"
#include "tool/model/index_table.h"
#include "tool/types/layout.h"

// How well a block's type is known; the smaller the better. What was followed stays as it is.
enum typed_rank {
    RANK_SURE,
    RANK_LIKELY,
    RANK_VAGUE,    // bytes
    RANK_UNKNOWN,  // only the way is known
    RANK_NONE,
    RANK_DONE,
};

enum { ELEMENTS_LEAST = 2 };      // in one block
enum { WRONG_ELEMENTS_MAX = 8 };  // one after the other, until a block is no array

#define PARENT_NONE UINT32_MAX
#define PARENT_ROOT (UINT32_C(1) << 31)    // and its index
#define ELEMENTS_WAIT (UINT64_C(1) << 32)  // with a block's number: all but its first element

// A variable. `value`: what a register has of it.
struct typed_root {
    const char *name, *function;  // function: NULL: it lasts
    const struct type *type;
    uint64_t address, value;
    bool is_value;
    const struct core_thread *thread;  // NULL: of none
};

struct typed_kind {
    const struct type *type;
    const char *names[2];  // of one, of several; NULL: not made yet
};

struct typed_class {
    uint64_t signature;
    const struct type *type;  // NULL: no module defines it
};

struct typed {
    const struct core_reach *reach;
    const struct core_image *core;
    struct core_types *types;
    const struct typed_allocations *allocations;  // while it is opened
    struct core_graph graph;                      // numbers
    struct string_pool *store;
    ARRAY(struct typed_module) modules;
    ARRAY(struct typed_kind) kinds;  // the first is none
    struct index_table ids;          // of kinds, by type
    ARRAY(struct typed_class) classes;
    struct index_table class_index;  // of classes, by signature
    ARRAY(struct typed_root) roots;
    size_t variable_count;                // of those, which last
    bool has_program;                     // one of the modules is the program
    uint32_t *type_ids, *parents;         // by number of the block
    uint8_t *ranks;                       // likewise
    uint64_t *is_own;                     // bits: that fits what the block says it is (RTTI)
    ARRAY(uint64_t) waiting[RANK_VAGUE];  // numbers of blocks to be followed
    size_t next[RANK_VAGUE];
    struct layout layout;
    uint64_t places;
    struct read_window window;
    bool is_failed;  // no memory
};

// Opens the debug information of all modules; reads their variables, and those of frames. False
// without memory.
bool typed_open_modules(struct typed *typed);
bool typed_read_roots(struct typed *typed);

// Bytes of an object; `size` becomes how many there are. NULL: none. Until the next call.
const uint8_t *typed_read(struct typed *typed, uint64_t address, uint64_t *size);
const uint8_t *typed_root_bytes(struct typed *typed, const struct typed_root *root, uint64_t *size);

// The number of a type among the kinds; 0 without memory.
uint32_t typed_kind_id(struct typed *typed, const struct type *type);

// The class that an object says it is of, with its definition; NULL: it says nothing.
const struct type *typed_class_at(struct typed *typed, uint64_t address);

// What is not told by a pointer to it: bytes of any meaning.
bool typed_is_vague(const struct type *type);

// Whether what lies behind the first element of a block may be another: its pointers lead where
// their types let them.
bool typed_is_element(struct typed *typed, const struct type *type, const uint8_t *bytes);

// Whether the last member is an array without an end.
bool typed_has_tail(const struct type *type);

#endif
