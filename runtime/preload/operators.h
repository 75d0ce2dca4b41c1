// SPDX-License-Identifier: Apache-2.0
// Hooks of operator new and delete, for allocators that bring their own (jemalloc, tcmalloc,
// mimalloc) and do not go through malloc.
//
// libcairn-cxx.so exports them, and `cairn run` chooses it for a program linked with such an
// allocator. libcairn.so keeps them to itself: elsewhere the operators reach malloc anyway, and a
// library that exports them without a C++ runtime behind it could not throw std::bad_alloc. It
// leads a program to them at its start, where it finds such an allocator (inject/operators_lead.c).
#ifndef RUNTIME_PRELOAD_OPERATORS_H
#define RUNTIME_PRELOAD_OPERATORS_H

#include <stdint.h>

enum operator_id {
#define NEW(name, parameters, arguments, alignment) OPERATOR_##name,
#define DELETE(name, parameters, arguments) OPERATOR_##name,
#include "runtime/preload/operators.def"
#undef NEW
#undef DELETE
    OPERATORS
};

// Returns their mangled names, each with a NUL behind it, in the order of the ids; an empty one
// ends.
const char *operators_names(void);

// Writes the addresses of the hooks.
void operators_hooks(uintptr_t hooks[OPERATORS]);

// Tells the hooks the real operators, NULL for one that is absent.
void operators_know(void *const next[OPERATORS]);

#endif
