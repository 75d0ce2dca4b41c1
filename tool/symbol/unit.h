// SPDX-License-Identifier: Apache-2.0
// The addresses asked for, and the compile units they belong to.
#ifndef TOOL_SYMBOL_UNIT_H
#define TOOL_SYMBOL_UNIT_H

#include <elfutils/libdw.h>

#include "tool/symbol/budget.h"
#include "tool/symbol/image.h"

#define UNIT_NONE UINT32_MAX

struct scope;

// One address on its way to an answer.
struct request {
    uint64_t address;
    uint64_t range_bytes;  // of the unit's range that won it
    uint32_t query;        // index of the caller's query
    uint32_t unit;         // index in unit_list, UNIT_NONE
    struct scope *scope;   // innermost function, NULL until found
    const char *file;      // of the line table; NULL if unknown
    uint32_t line;
    bool has_line;  // the line table had a row for it
};

struct unit {
    Dwarf_Die die;
};

struct unit_list {
    struct unit *units;
    size_t count;
    size_t capacity;
};

// Reads the ranges of all compile units and gives each request (sorted by address) the unit whose
// range fits closest. False only without memory.
bool unit_assign(struct unit_list *list, Dwarf *dwarf, const struct image *image,
                 struct request *requests, size_t count, struct effort *effort);
void unit_free(struct unit_list *list);

// Index of the first request (sorted by address) that is not below the address.
size_t request_lower_bound(const struct request *requests, size_t count, uint64_t address);

#endif
