// SPDX-License-Identifier: Apache-2.0
// Where references to blocks may come from that are no blocks themselves: registers of all
// threads, their stacks and thread-local data, data of modules, and whatever else the process
// mapped. Not among them: what malloc manages, code, the parts of stacks below the stack pointer,
// cairn's own memory.
#ifndef TOOL_CORE_ROOTS_H
#define TOOL_CORE_ROOTS_H

#include "tool/core/glibc.h"
#include "tool/core/spans.h"

enum root_kind { ROOT_REGISTER, ROOT_STACK, ROOT_DATA, ROOT_OTHER };

struct core_root {
    enum root_kind kind;
    const struct core_thread *thread;  // of a register or a stack; NULL: unknown
    const struct core_file *file;      // of data; NULL: none
};

// The memory to be looked through, settled. `others` (settled) is left out as well. False without
// memory.
bool core_find_roots(const struct core_image *core, const struct core_heap *heap,
                     const struct core_spans *others, struct core_spans *roots);

// What an address in these spans belongs to.
struct core_root core_root_of(const struct core_image *core, uint64_t address);

#endif
