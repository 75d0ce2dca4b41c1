// SPDX-License-Identifier: Apache-2.0
// Qualified names of functions whose debug information has only the last part: compilers leave
// out the linkage name of what is in an anonymous namespace or local to a function.
#ifndef TOOL_SYMBOL_QUALIFY_H
#define TOOL_SYMBOL_QUALIFY_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/symbol/string_pool.h"

struct qualifier;

// Everything is made in `scratch`, and gone with it; no memory: NULL.
struct qualifier *qualifier_open(struct string_pool *scratch);

// Namespaces, classes and functions around the function that `function` declares ("a::B<int>"),
// "" if there are none; NULL only without memory. Walks each compile unit at most once.
const char *qualifier_find(struct qualifier *qualifier, Dwarf_Die *function);

// Line at which the class around that function is declared, 0 if unknown: a lambda's own code has
// no line of its own with gcc. False only without memory.
bool qualifier_class_line(struct qualifier *qualifier, Dwarf_Die *function, uint32_t *line);

#endif
