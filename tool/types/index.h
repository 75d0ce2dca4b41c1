// SPDX-License-Identifier: Apache-2.0
// Part of type.h's implementation: one walk over a module's debug information, which finds the
// types that have names, what they are in, and the variables with lasting places.
#ifndef TOOL_TYPES_INDEX_H
#define TOOL_TYPES_INDEX_H

#include <elfutils/libdw.h>

#include "tool/base/array.h"
#include "tool/model/index_table.h"

// A namespace, class or function; the first is the outermost one, without a name.
struct scope_name {
    const char *name;  // in the debug information
    uint32_t parent;   // index
    uint64_t hash;     // of all names up to here
};

// The attribute of calls that allocate ("LLVM_alloc_type"): clang writes it from 22 on, where it
// optimizes, for `new`.
enum { DW_AT_OF_ALLOCATION = 0x3e0e };

// A type with a name.
struct named_die {
    Dwarf_Die die;
    uint32_t scope;
    bool is_definition;
};

struct variable_die {
    Dwarf_Die die;
    uint32_t scope;
};

// A call that allocates an object of a type that the compiler knew.
struct call_die {
    uint64_t return_address;  // ELF virtual address
    Dwarf_Die die;
};

// Code of a unit.
struct unit_range {
    uint64_t start, end;
    Dwarf_Die unit;
};

struct type_index {
    ARRAY(struct scope_name) names;
    ARRAY(struct named_die) dies;  // ascending by the address of their DIEs, once they are settled
    ARRAY(struct variable_die) variables;
    ARRAY(struct call_die) calls;     // ascending by their return addresses, once they are settled
    struct index_table definitions;   // of `dies`, by hash
    ARRAY(struct unit_range) ranges;  // ascending by start, once one was asked for
    bool has_ranges;
    bool is_failed;  // no memory
};

// Adds the units of a file. To be settled when all are there.
void type_index_add(struct type_index *index, Dwarf *dwarf);
bool type_index_settle(struct type_index *index);  // false without memory
void type_index_free(struct type_index *index);

// The DIE of the call that returns to an address; NULL: no such call allocates.
const struct call_die *type_index_call(const struct type_index *index, uint64_t return_address);

// The unit whose code an address is in. By .debug_aranges, or, since clang and rustc write none for
// what they compile, by the units' own ranges.
bool type_index_unit_at(struct type_index *index, Dwarf *dwarf, uint64_t pc, Dwarf_Die *unit);

// Writes "a::b" for a name in a scope; false: it is too long.
bool type_index_qualify(const struct type_index *index, uint32_t scope, const char *name,
                        char *text, size_t size);

// The entry of a type's DIE; NULL: it has no name.
const struct named_die *type_index_entry(const struct type_index *index, const Dwarf_Die *die);

// The first definition of that name, if `alike` is not NULL the first that is as that one; NULL:
// none.
const struct named_die *type_index_find(const struct type_index *index, const char *name,
                                        Dwarf_Die *alike);

// Whether two definitions of one name are the same in two units.
bool type_index_are_alike(Dwarf_Die *one, Dwarf_Die *other);

#endif
