// SPDX-License-Identifier: Apache-2.0
// What a module of a running process says of itself in its dynamic section, and its symbols, read
// from the process' memory.
#ifndef TOOL_ATTACH_MODULE_TABLES_H
#define TOOL_ATTACH_MODULE_TABLES_H

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/proc/remote.h"

struct loaded_module {
    char name[PATH_MAX];  // of the link map; "" for the executable
    uint64_t link_map, bias;
    unsigned namespace;       // 0: the program's own; others are of dlmopen
    uint64_t symbols, texts;  // addresses of the tables; 0: none
    uint64_t text_bytes;
    uint64_t hash, gnu_hash;
    uint64_t relocations[2];  // those of data, those of calls
    uint64_t relocation_bytes[2];
    uint64_t start, end;  // of its segments
    // Copies, made when they are asked for first.
    Elf64_Sym *symbol_table;
    size_t symbol_count;
    char *text_table;
};

// Takes what the module's dynamic section at the address says; its bias is known. False: none.
bool module_read_dynamic(struct loaded_module *module, const struct remote *remote,
                         uint64_t dynamic);
void module_free(struct loaded_module *module);

// Reads the module's symbols, at least `least` of them: those that are only used by relocations are
// counted nowhere. False if there are none.
bool module_load_symbols(struct loaded_module *module, const struct remote *remote, size_t least);

// The address of a function that the module defines; 0: none.
uint64_t module_symbol(struct loaded_module *module, const struct remote *remote, const char *name);

#endif
