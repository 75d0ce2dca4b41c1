// SPDX-License-Identifier: Apache-2.0
// The functions of one compile unit that contain requested addresses, with what is inlined in
// them.
#ifndef TOOL_SYMBOL_SCOPE_H
#define TOOL_SYMBOL_SCOPE_H

#include "tool/symbol/dwp.h"
#include "tool/symbol/line.h"
#include "tool/symbol/qualify.h"
#include "tool/symbol/string_pool.h"
#include "tool/symbol/unit.h"

struct scope {
    struct scope *caller;   // function this one is inlined into, NULL if it is not inlined
    const char *linkage;    // name as the compiler wrote it, NULL if the unit has none
    bool is_full_name;      // not just the last part of a qualified name
    const char *call_file;  // where the caller calls it, if inlined
    uint32_t call_line;
    uint32_t declared_line;  // of a lambda or closure, else 0
};

// What a walk uses besides the unit.
struct scope_use {
    struct line_table *files;       // names the files of calls
    struct qualifier *qualifier;    // made in `scratch`
    struct string_pool *scratch;    // gets the scopes
    struct string_pool *names;      // gets names and paths
    bool has_symtab;                // gives the full names of functions that are not inlined
    const struct dwp_unit *packed;  // the unit is of a package; NULL: it is not
};

// Walks the unit's tree and sets the scope of each request it finds a function for. `requests`
// are those of this unit, sorted by address. False only without memory.
bool scope_find(const struct scope_use *use, Dwarf_Die *unit, struct request *requests,
                size_t count);

#endif
