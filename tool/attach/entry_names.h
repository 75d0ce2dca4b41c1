// SPDX-License-Identifier: Apache-2.0
// The names that allocators which are linked into programs give their functions: a family for each
// prefix.
#ifndef TOOL_ATTACH_ENTRY_NAMES_H
#define TOOL_ATTACH_ENTRY_NAMES_H

#include "format/attachment.h"
#include "tool/base/elf_names.h"

enum entry_family {
    FAMILY_PLAIN,
    FAMILY_RJEM,
    FAMILY_JE,
    FAMILY_TC,
    FAMILY_MI,
    FAMILY_PYTHON_OBJECTS,
    FAMILY_PYTHON_MEMORY,
    FAMILY_COUNT
};
enum {
    IN_PLAIN = 1 << FAMILY_PLAIN,
    IN_JE = 1 << FAMILY_RJEM | 1 << FAMILY_JE,
    IN_TC = 1 << FAMILY_TC,
    IN_MI = 1 << FAMILY_MI,
    IN_PYTHON = 1 << FAMILY_PYTHON_OBJECTS | 1 << FAMILY_PYTHON_MEMORY,
};

// A function of an allocator, without its prefix; the families that have it, as bits.
struct entry_name {
    const char *name;
    enum cairn_entry_kind kind;
    unsigned where;
};

// Every name that an allocator of any family may give a function.
void entry_names_want(struct elf_names *names);

// The family whose prefix the name has, and what it is without that.
enum entry_family entry_family_of(const char **name);

// What an allocator of the family is called.
const char *entry_family_allocator(enum entry_family family);

// The function of a family by what its name is without the prefix; NULL: it has none such. Of
// FAMILY_PLAIN also those that are only meant where mallctl is defined as well: those are not
// IN_PLAIN.
const struct entry_name *entry_name_find(const char *rest, enum entry_family family);

#endif
