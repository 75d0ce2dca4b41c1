// SPDX-License-Identifier: Apache-2.0
// Memory of a symbol_table: interned strings and blocks that live until the table is closed.
// Everything returns NULL when memory is out; nothing is freed one by one.
#ifndef TOOL_SYMBOL_STRING_POOL_H
#define TOOL_SYMBOL_STRING_POOL_H

#include <stddef.h>

struct string_pool;

struct string_pool *string_pool_open(void);
void string_pool_close(struct string_pool *store);

// `bytes` of zeroed memory, aligned for any type.
void *string_pool_alloc(struct string_pool *store, size_t bytes);

// The one copy of this text; `text` need not be terminated, the copy is.
const char *string_pool_intern(struct string_pool *store, const char *text, size_t length);

// Readable form of a name as it stands in an ELF or DWARF file (name.h), interned; each mangled
// name is demangled once.
const char *string_pool_readable(struct string_pool *store, const char *mangled);

// "DIRECTORY/NAME" interned; just NAME if it is absolute or the directory is empty or NULL.
const char *string_pool_path(struct string_pool *store, const char *directory, const char *name);

#endif
