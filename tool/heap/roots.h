// SPDX-License-Identifier: Apache-2.0
// The roots of a process: memory whose words keep blocks reachable (reach.h).
//
// Roots are not: what malloc manages, code, pages of modules that are as in their files, the parts
// of stacks below the stack pointer, cairn's own memory.
#ifndef TOOL_HEAP_ROOTS_H
#define TOOL_HEAP_ROOTS_H

#include "tool/base/spans.h"
#include "tool/glibc/chunks.h"
#include "tool/heap/image.h"

enum root_kind { ROOT_REGISTER, ROOT_STACK, ROOT_DATA, ROOT_OTHER };

struct core_root {
    enum root_kind kind;
    const struct core_thread *thread;  // of a register or a stack; NULL: unknown
    const struct core_file *file;      // of data; NULL: none
};

// The memory to be searched, settled. `others` (settled) is left out as well. False without
// memory.
bool core_find_roots(const struct core_image *core, const struct glibc_heap *heap,
                     const struct spans *others, struct spans *roots);

// A library that is known as an allocator by its name.
bool core_file_is_allocator(const struct core_file *file);

// What an address in these spans belongs to.
struct core_root core_root_of(const struct core_image *core, uint64_t address);

// The same for many addresses: `plain` is the last segment that was found to have no stack of a
// thread in it, NULL at first. To find a stack takes some microseconds for each thread.
struct core_root core_root_near(const struct core_image *core, uint64_t address,
                                const struct memory_segment **plain);

#endif
