// SPDX-License-Identifier: Apache-2.0
// The types of blocks and the ways to them in the program's own words, by its debug information:
// beginning with variables, every pointer in what is known leads to a block of the type that it is
// declared to lead to, and so on. An object of C++ says itself what it is, by its first word; of
// others the call says it that allocated them, if the compiler noted that and it was recorded.
//
//     sure     a block that a pointer of that type leads to the start of
//     likely   one of several elements, if the pointers in it lead where their types let them; or
//              what a union's member leads to
//     unknown  what a void pointer or a pointer into the midst leads to: the way is known, the type
//              is not
//
// What is sure is followed before what is likely, so that a guess never takes a block from a type
// that is known. A way is one of those with fewest guesses, not always the shortest one.
//
// It takes eight bytes for each block, some forty for one whose elements have pointers and are
// counted by a container, and whatever libdw takes.
#ifndef TOOL_HEAP_TYPED_H
#define TOOL_HEAP_TYPED_H

#include "tool/heap/references.h"
#include "tool/heap/types.h"
#include "tool/types/layout.h"

struct typed;

// What is known of a block from its allocation: the type, which typed_allocated finds by the calls
// of its stack; NULL: not known.
struct typed_allocations {
    const struct type *(*type_of)(void *context, struct typed *typed, uint64_t block);
    void *context;
};

// The type that the call returning to an address of a module allocates, which is loaded at a bias.
const struct type *typed_allocated(struct typed *typed, uint64_t bias, uint64_t return_address);

// `types` and `reach` (which has its map) must outlive it. `allocations`: NULL: none are known.
// What it found may be nothing: modules without debug information. NULL after an error.
struct typed *typed_open(const struct core_reach *reach, struct core_types *types,
                         const struct typed_allocations *allocations, struct error *error);
// Takes NULL.
void typed_close(struct typed *typed);

// The type of the block in use that begins at the address; NULL: not known.
const struct type *typed_of(const struct typed *typed, uint64_t address);

// Its name for people, safe to print: without default template arguments, "[]" behind it if there
// are several elements. Kept until typed_close; equal names are the same pointer. NULL as above.
const char *typed_name(struct typed *typed, uint64_t address, uint64_t size);

// The name of a type for people, safe to print.
void typed_write_name(const struct type *type, char *text, size_t size);

// The way to the block in use that the address lies in; false: none is known. Safe to print, but
// for LAYOUT_EXACT: a command of gdb that prints the address of the block's start.
bool typed_path(struct typed *typed, uint64_t address, enum layout_words words, char *text,
                size_t size);

// A struct or union in a variable or a typed block, with its bytes. `is_local`: the variable is on
// the stack: it may not have been constructed yet, or another variable may have its place.
struct typed_object {
    const struct type *type;
    const uint8_t *bytes;
    uint64_t size, address;
    bool is_local;
};

// Calls for every one of them, those of functions last.
void typed_each_struct(struct typed *typed,
                       void (*see)(void *context, const struct typed_object *object),
                       void *context);

// Types of variables of functions that have no place at their instruction: optimized code keeps
// them nowhere, or in pieces.
const struct type *const *typed_unplaced(const struct typed *typed, size_t *count);

// Takes the block in use that begins at the address (`is_inside`: or has it inside). False: there
// is none with room for so many bytes, or it was taken before.
bool typed_take_block(struct typed *typed, uint64_t address, uint64_t bytes, bool is_inside);

// Returns true if an address was given back: it lies between blocks in use of the heap, or in no
// memory.
bool typed_is_given_back(const struct typed *typed, uint64_t address);

// Blocks with a type and with a way, variables, modules whose debug information was read; whether
// the program, which is what is mapped first, is one of them.
struct typed_counts {
    uint64_t typed_blocks, typed_bytes, blocks, variables, modules;
    bool has_program;
};
struct typed_counts typed_count(const struct typed *typed);

#endif
