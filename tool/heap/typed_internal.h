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

// What of a block are elements; `to` UINT64_MAX: that is not known.
struct typed_extent {
    uint32_t number;
    uint64_t from, to, inner;  // as those of layout_extent
    bool is_table;             // likewise
    bool is_single;            // a class that is derived from what is known: there are no others
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
    ARRAY(const struct type *) unplaced;  // of variables of functions that have no place
    bool has_program;                     // one of the modules is the program
    uint32_t *type_ids, *parents;         // by number of the block
    uint8_t *ranks;                       // likewise
    uint64_t *is_own;                     // bits: that fits what the block says it is (RTTI)
    uint64_t *is_class;                   // bits: it says so, and no module defines the class
    uint64_t *is_taken;                   // bits: by typed_take_block; NULL: none
    ARRAY(uint64_t) waiting[RANK_VAGUE];  // numbers of blocks to be followed
    size_t next[RANK_VAGUE];
    ARRAY(struct typed_extent) extents;
    struct index_table extent_index;  // by number
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

// The class that an object says it is of, with its definition; NULL: no module has that, or,
// without `is_class`, it says nothing.
const struct type *typed_class_at(struct typed *typed, uint64_t address, bool *is_class);

// What is not told by a pointer to it: bytes of any meaning.
bool typed_is_vague(const struct type *type);

// Notes and forgets what of a block are elements, by what refers to it.
bool typed_has_extent(const struct typed *typed, uint32_t number);
void typed_note_extent(struct typed *typed, uint32_t number, const struct layout_extent *extent);
void typed_note_single(struct typed *typed, uint32_t number, const struct type *type);
bool typed_is_single(const struct typed *typed, uint32_t number);
void typed_forget_extent(struct typed *typed, uint32_t number);

// The elements of a block, one after the other.
struct typed_elements {
    uint64_t at, end, each;  // in the block
    uint64_t inner;          // as in layout_extent
    bool is_known;           // a container says where they are
    bool is_table;           // and behind them which of them are there, as in layout_extent
    int wrong;               // one after the other, that are none
};
struct typed_elements typed_elements_of(const struct typed *typed, uint32_t number,
                                        const struct type *type, uint64_t size);
// The next one's place in the block, whose bytes these are; false: there is none.
bool typed_next_element(struct typed *typed, struct typed_elements *elements,
                        const struct type *type, const uint8_t *bytes, uint64_t *at);

// Whether what lies behind the first element of a block may be another: its pointers lead where
// their types let them.
bool typed_is_element(struct typed *typed, const struct type *type, const uint8_t *bytes);

// Whether the last member is an array without an end.
bool typed_has_tail(const struct type *type);

#endif
