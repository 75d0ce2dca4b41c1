// SPDX-License-Identifier: Apache-2.0
// Types of a program as its debug information has them (DWARF 5, 5.1 to 5.7 and 4.1): what a block
// has to be for the pointers in it to be found and named.
//
// A type is read when it is asked for, so that a program with a million of them costs little more
// than the walk that indexes their names. Typedefs and qualifiers are looked through; a struct
// without a name has that of its typedef. A declaration stands for the definition of that name,
// wherever in the module it is. Everything that belongs to a `types` is valid until it is closed.
//
// Debug information is not trusted: what contradicts itself gives a type without fields. Not for
// several threads at once.
#ifndef TOOL_TYPES_TYPE_H
#define TOOL_TYPES_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/symbol/locate.h"

enum type_kind {
    TYPE_NONE,     // void, a function, what cannot be read
    TYPE_NUMBER,   // of any sort, and enumerations
    TYPE_POINTER,  // and references
    TYPE_ARRAY,
    TYPE_STRUCT,  // and classes
    TYPE_UNION,
};

struct types;
struct type_source;
struct type_role;

struct type {
    enum type_kind kind;
    const char *name;            // qualified, as in the debug information; "" if it has none
    uint64_t bytes;              // 0: not known
    bool is_rust;                // debuggers take expressions in that language
    struct type_source *source;  // tool/types/read.c's
    struct type_role *role;      // tool/types/layout.c's
};

// A member or base class of a struct or union. What is narrower than bytes is left out.
struct type_field {
    const char *name;  // NULL: a base class, or a member without a name
    const struct type *type;
    uint64_t offset;
    bool is_base;
    bool is_bits;     // narrower than its type
    bool is_variant;  // there only if the struct's discriminant has one of these values (Rust)
    bool is_other_variant;  // ... or none that another variant has
    uint64_t value;
};

struct type_fields {
    const struct type_field *items;
    size_t count;
    // of the variants; NULL: there are none
    const struct type *discriminant;
    uint64_t discriminant_offset;
};

// NULL: the files have no debug information, or there is no memory.
struct types *types_open(const struct located *files, const struct symbol_options *options);
// Takes NULL.
void types_close(struct types *types);

// Of a struct or union; others have none.
struct type_fields type_fields(const struct type *type);

// What a pointer leads to, or an array consists of; NULL: of another type.
const struct type *type_target(const struct type *type);

// How many elements an array has; 0: none, or as many as there is room for.
uint64_t type_elements(const struct type *type);

// The type that a template was given as its parameter of that number; NULL: none.
const struct type *type_parameter(const struct type *type, unsigned number);

// A definition by its whole name; NULL: there is none.
const struct type *types_named(struct types *types, const char *name);

// What the call that returns to an ELF virtual address allocates, as the compiler says; NULL: it
// does not.
const struct type *types_allocated(struct types *types, uint64_t return_address);

// Writes the name of a type, of pointers too ("Item *"); what does not fit is cut off.
void type_write_name(const struct type *type, char *text, size_t size);

// What layout.c has of a type: zero at first.
enum { TYPE_ROLE_MEMBERS = 4 };
struct type_role {
    bool is_known, has_pointers;
    uint8_t kind;                         // enum role
    bool is_library;                      // of the language's own library
    bool is_hidden;                       // as that, and nobody writes its members' names
    const struct type *part;              // what it holds: nodes, elements
    uint8_t extents;                      // enum extents_of (layout_extents.h)
    bool has_members;                     // those that say where its elements lie
    uint64_t members[TYPE_ROLE_MEMBERS];  // their offsets
};

struct type_variable {
    const char *name;  // qualified
    const struct type *type;
    uint64_t place;  // ELF virtual address, or offset in the thread's own area
    bool is_thread_local;
};

// Calls `see` for each variable with a lasting place until it returns false.
void types_each_variable(struct types *types,
                         bool (*see)(void *context, const struct type_variable *variable),
                         void *context);

// The variables of the functions that `pc`, an ELF virtual address, lies in: the innermost first.
// The place is that of DWARF's expressions, which the caller evaluates.
struct type_local {
    const char *name;
    const struct type *type;
    const char *function;
    const void *expression;  // Dwarf_Op
    size_t operations;       // 0: it has no place there, as where the compiler left it out
    const void *frame_base;  // likewise; NULL: none
    size_t frame_operations;
};
void types_each_local(struct types *types, uint64_t pc,
                      bool (*see)(void *context, const struct type_local *local), void *context);

#endif
