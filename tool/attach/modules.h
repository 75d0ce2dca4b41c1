// SPDX-License-Identifier: Apache-2.0
// The modules of a running process as its dynamic linker lists them, read from its own memory: so
// it does not matter whether their files can be reached.
#ifndef TOOL_ATTACH_MODULES_H
#define TOOL_ATTACH_MODULES_H

#include "tool/attach/module_tables.h"
#include "tool/base/array.h"
#include "tool/proc/remote.h"

struct loaded_modules {
    ARRAY(struct loaded_module) items;
    uint64_t linker;       // address that the dynamic linker was mapped at
    uint64_t debug;        // of its struct r_debug
    uint64_t fingerprint;  // differs when the list does
    bool is_static;        // no dynamic linker lists any
};

// Reads the list.
bool modules_read(struct loaded_modules *modules, const struct remote *remote, struct error *error);
// One of them, by its struct link_map: of what dlopen has just loaded.
bool module_read_at(struct loaded_module *module, const struct remote *remote, uint64_t link_map);
void modules_free(struct loaded_modules *modules);

// Whether it is glibc's libc.
bool module_is_libc(const struct loaded_module *module);

// The list's fingerprint now; 0: it is being changed, or cannot be read.
uint64_t modules_fingerprint(const struct loaded_modules *modules, const struct remote *remote);

#endif
