// SPDX-License-Identifier: Apache-2.0
// The modules of a running process as its dynamic linker lists them, read from its own memory: so
// it does not matter whether their files can be reached.
#ifndef TOOL_ATTACH_MODULES_H
#define TOOL_ATTACH_MODULES_H

#include <elf.h>
#include <limits.h>

#include "tool/base/array.h"
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

struct loaded_modules {
    ARRAY(struct loaded_module) items;
    uint64_t linker;       // address that the dynamic linker was mapped at
    uint64_t debug;        // of its struct r_debug
    uint64_t fingerprint;  // differs when the list does
};

// Reads the list. `error` says so where there is no dynamic linker.
bool modules_read(struct loaded_modules *modules, const struct remote *remote, struct error *error);
// One of them, by its struct link_map: of what dlopen has just loaded.
bool module_read_at(struct loaded_module *module, const struct remote *remote, uint64_t link_map);
void module_free(struct loaded_module *module);
void modules_free(struct loaded_modules *modules);

// Whether it is glibc's libc.
bool module_is_libc(const struct loaded_module *module);

// The list's fingerprint now; 0: it is being changed, or cannot be read.
uint64_t modules_fingerprint(const struct loaded_modules *modules, const struct remote *remote);

// Reads the module's symbols, at least `least` of them: those that are only used by relocations are
// counted nowhere. False if there are none.
bool module_load_symbols(struct loaded_module *module, const struct remote *remote, size_t least);

// The address of a function that the module defines; 0: none.
uint64_t module_symbol(struct loaded_module *module, const struct remote *remote, const char *name);

#endif
