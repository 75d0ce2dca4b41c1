// SPDX-License-Identifier: Apache-2.0
// The functions of a module by address, on demand its data too, from its ELF symbol tables. Sorted
// once, then searched.
#ifndef TOOL_SYMBOL_SYMTAB_H
#define TOOL_SYMBOL_SYMTAB_H

#include "tool/symbol/image.h"

struct symtab_entry {
    uint64_t start;
    uint64_t size;     // 0: unknown, reaches to the next entry
    const char *name;  // mangled; in the image, valid while it is open
    uint8_t rank;      // of names for the same address the highest is taken
    bool is_label;     // has no type: taken only where no function is
};

// All zero is an empty table.
struct symtab {
    struct symtab_entry *entries;
    size_t count;
    size_t capacity;
    bool is_sorted;
    bool has_data;  // set by the caller before the first symtab_add: objects count as functions do
};

// Adds the functions of the image's table of type SHT_SYMTAB or SHT_DYNSYM; `added` tells whether
// there were any. False only without memory.
bool symtab_add(struct symtab *symtab, const struct image *image, uint32_t type, bool *added);

// The function whose code contains the address, NULL if there is none. Sorts on first use.
const struct symtab_entry *symtab_find(struct symtab *symtab, uint64_t address);

void symtab_free(struct symtab *symtab);

#endif
