// SPDX-License-Identifier: Apache-2.0
// The library that a tool has put into a static program, as a module: no dynamic linker lists it.
#ifndef TOOL_ATTACH_STATIC_LIBRARY_H
#define TOOL_ATTACH_STATIC_LIBRARY_H

#include "tool/attach/modules.h"

// The file in memory that it is mapped from.
#define STATIC_LIBRARY_FILE "libcairn.so"

// Adds the one whose ELF header is at `start`; returns the address of its cairn_attachment. 0:
// there is none.
uint64_t static_library_take(struct loaded_modules *modules, const struct remote *remote,
                             uint64_t start);

// Adds the one that records, of a tool that may have been killed or attached to the parent of a
// fork; returns the same.
uint64_t static_library_find(struct loaded_modules *modules, const struct remote *remote);

#endif
