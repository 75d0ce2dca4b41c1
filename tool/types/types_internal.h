// SPDX-License-Identifier: Apache-2.0
// What the files of type.h share.
#ifndef TOOL_TYPES_TYPES_INTERNAL_H
#define TOOL_TYPES_TYPES_INTERNAL_H

#include "tool/symbol/debug_information.h"
#include "tool/types/index.h"
#include "tool/types/type.h"

enum { TYPE_NAME_BYTES = 4096 };

// A type by the DIE that refers to it.
struct known_type {
    const void *address;
    unsigned dimension;
    const struct type *type;
};

struct types {
    struct string_pool *store;
    struct debug_information debug;
    struct type_index names;
    ARRAY(struct known_type) known;
    struct index_table index;  // of `known`
    struct type none;
};

// The type that a DIE refers to.
const struct type *types_of(struct types *types, Dwarf_Die *die);

#endif
