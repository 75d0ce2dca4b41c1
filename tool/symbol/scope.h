// SPDX-License-Identifier: Apache-2.0
// The functions of one compile unit that contain requested addresses, with what is inlined in
// them.
#ifndef TOOL_SYMBOL_SCOPE_H
#define TOOL_SYMBOL_SCOPE_H

#include "tool/symbol/line_table.h"
#include "tool/symbol/store.h"
#include "tool/symbol/unit.h"

struct scope {
    struct scope *caller;   // function this one is inlined into, NULL if it is not inlined
    const char *function;   // readable name, NULL if the unit has none
    bool is_full_name;      // not just the last part of a qualified name
    const char *call_file;  // where the caller calls it, if inlined
    uint32_t call_line;
};

// Walks the unit's tree once and sets the scope of each request it finds a function for.
// `lines` is the unit's table, `requests` are those of this unit, sorted by address. Scopes are
// made in `scratch`, names in `names`. False only without memory.
bool scope_find(Dwarf_Die *unit, struct line_table *lines, struct request *requests, size_t count,
                struct store *scratch, struct store *names);

#endif
