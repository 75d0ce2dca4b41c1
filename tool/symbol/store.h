// SPDX-License-Identifier: Apache-2.0
// Memory of a symbol_table: interned strings and blocks that live until the table is closed.
// Everything returns NULL when memory is out; nothing is freed one by one.
#ifndef TOOL_SYMBOL_STORE_H
#define TOOL_SYMBOL_STORE_H

#include <stddef.h>

struct store;

struct store *store_open(void);
void store_close(struct store *store);

// `bytes` of zeroed memory, aligned for any type.
void *store_alloc(struct store *store, size_t bytes);

// The one copy of this text; `text` need not be terminated, the copy is.
const char *store_intern(struct store *store, const char *text, size_t length);

// Readable form of a name as it stands in an ELF or DWARF file (name.h), interned; each mangled
// name is demangled once.
const char *store_readable(struct store *store, const char *mangled);

// "DIRECTORY/NAME" interned; just NAME if it is absolute or the directory is empty or NULL.
const char *store_path(struct store *store, const char *directory, const char *name);

#endif
