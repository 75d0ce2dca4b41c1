// SPDX-License-Identifier: Apache-2.0
// Where the thread-local data of a module lies in each thread ("ELF Handling For Thread-Local
// Storage", 3.4), from the outside.
//
//     program    at a distance from the thread's pointer that its segment's size decides
//     library    relocations say what the dynamic linker wrote into memory for the module's code:
//                the distance of a variable, or the module's number, by which the thread's own
//                vector (DTV) has the address; blocks there that no thread used yet are not there
//
// A library that accesses none of its variables in these ways has none that are known.
#ifndef TOOL_HEAP_THREAD_LOCALS_H
#define TOOL_HEAP_THREAD_LOCALS_H

#include "tool/heap/types.h"

struct thread_locals {
    enum { THREAD_LOCALS_NONE, THREAD_LOCALS_STATIC, THREAD_LOCALS_DYNAMIC } kind;
    uint64_t distance;      // static: from the thread's pointer, modulo 2^64
    uint64_t number;        // dynamic: of the module
    uint64_t bytes, align;  // of the segment, of any kind
};

struct thread_locals thread_locals_of(const struct core_image *core,
                                      const struct elf_module *module);

// Where they begin in a thread; false: nowhere.
bool thread_locals_start(const struct core_image *core, const struct thread_locals *locals,
                         const struct core_thread *thread, uint64_t *start);

// Where the vector of a thread begins and ends that has the addresses of dynamic ones. False: not
// known.
bool thread_locals_vector(const struct core_image *core, const struct core_thread *thread,
                          uint64_t *start, uint64_t *end);

// The name in the module's symbols of the variable that lies at an offset of its thread-local data,
// safe to print. False: there is none.
bool thread_locals_name(const struct located *files, uint64_t offset, char *name, size_t size);

#endif
