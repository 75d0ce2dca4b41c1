// SPDX-License-Identifier: Apache-2.0
// The real functions behind the hooks: the next definition after ours in the dynamic linker's
// order, that is libc's or that of another preloaded or linked allocator.
//
// Until they are resolved every pointer leads to a bootstrap function that resolves them; what the
// dynamic linker itself allocates meanwhile comes from a small static buffer. So the hot path never
// asks whether it may call.
#ifndef RUNTIME_PROCESS_REAL_H
#define RUNTIME_PROCESS_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/heap_functions.h"
#include "runtime/sys/sys.h"

#define HOOK(result, name, parameters) result(*name) parameters;
#define HOOK_LATE HOOK
struct real {
#include "runtime/hook/hooks.def"
};
#undef HOOK
#undef HOOK_LATE

extern HIDDEN struct real real;

// Resolves all functions; harmless when done already. May allocate through the dynamic linker.
void real_resolve(void);

// False while the first call of real_resolve is under way.
bool real_is_resolved(void);

// Another way to find a function, where the tool put this library into a process that ran already
// (inject/attach.h); NULL: the dynamic linker's order. NULL also before relocations were made.
extern HIDDEN void *(*real_finder)(const char *name);

// The names of all functions that every system has, each behind the NUL of the one before, and an
// empty one at the end.
const char *real_names(void);

// The next definition of a function after ours; NULL: there is none.
void *real_find(const char *name);

// True if the next malloc is glibc's own. Otherwise `path` of what it is, if that is known.
bool real_is_glibc(void);
const char *real_allocator_path(void);

// Where the library lies that malloc comes from. False if it is libc, or not known.
bool real_allocator_range(uintptr_t *start, uintptr_t *end);

// True if the function lies in the library that malloc comes from, and that is not libc. The gate
// knows where that is from then on.
bool real_is_of_allocator(const void *function);

// Blocks of the bootstrap buffer: never given back to an allocator.
bool bootstrap_owns(const void *block);
size_t bootstrap_size(const void *block);

#endif
