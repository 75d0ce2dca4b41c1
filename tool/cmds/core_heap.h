// SPDX-License-Identifier: Apache-2.0
// What `cairn core` prints about glibc's heap as a whole.
#ifndef TOOL_CMDS_CORE_HEAP_H
#define TOOL_CMDS_CORE_HEAP_H

#include "tool/cmds/core_sets.h"

// Blocks in use and free by size, what is free where, and why the system does not get it back.
bool core_print_heap_figures(struct core_subject *subject, struct error *error);
// The same, and the next commands.
bool core_print_heap(struct core_subject *subject, struct error *error);

// What `cairn core` prints about blocks that were recorded: who asked for them.

// Blocks by the module that asked for them; with `module` by its functions; with `function` too by
// return address. Fails if no block is of these.
bool core_print_groups(const struct core_subject *subject, const char *module, const char *function,
                       struct error *error);

// Thread and stack of a recorded block. core_want_origin says of which ones they will be printed;
// then names_resolve is to be called.
void core_want_origin(const struct core_subject *subject, uint32_t cell);
bool core_print_origin(const struct core_subject *subject, uint32_t cell, struct error *error);

// What the core holds, and the next commands.
bool core_print_overview(const struct core_subject *subject, struct error *error);

#endif
