// SPDX-License-Identifier: Apache-2.0
// Functions that the compiler made others of, with a name of its own: "pool_alloc.constprop.0" of
// pool_alloc, whose arguments need not be those of the source any more.
#ifndef TOOL_SYMBOL_RENAMED_H
#define TOOL_SYMBOL_RENAMED_H

#include <stdbool.h>
#include <stddef.h>

// Finds the first function in the file's symbol table that was made of `name`. False: there is
// none, or the file has no symbol table.
bool renamed_find(const char *path, const char *name, char *out, size_t size);

#endif
