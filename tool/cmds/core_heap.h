// SPDX-License-Identifier: Apache-2.0
// What `cairn core` prints about glibc's heap as a whole.
#ifndef TOOL_CMDS_CORE_HEAP_H
#define TOOL_CMDS_CORE_HEAP_H

#include "tool/cmds/core_subject.h"

// Blocks in use and free by size, what is free where, and why the system does not get it back.
bool core_print_heap(struct core_subject *subject, struct error *error);

#endif
