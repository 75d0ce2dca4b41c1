// SPDX-License-Identifier: Apache-2.0
// Hooks for the functions of an allocator that is linked into the executable. The tool has written
// jumps where these begin, which lead to the hook of their kind (format/attachment.h) with the
// program's own arguments and, as the sixth, the way to the function without the jump. So one hook
// serves every function of its kind, whatever its name. Modules of other namespaces come here too
// (namespaces.h).
//
// These functions call one another: the outermost call is the event. Where what libc's allocator
// gives lies beside blocks of an executable's, the live map is the wide one.
#ifndef RUNTIME_INJECT_ENTRIES_H
#define RUNTIME_INJECT_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

// Some are called by machine code that the compiler does not see.
#define ENTRY HIDDEN __attribute__((used)) uintptr_t

// A function with all its arguments as words: more than it takes are passed on unread.
typedef uintptr_t entry_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

ENTRY entry_alloc(uintptr_t size, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                  entry_function *actual);
ENTRY entry_aligned(uintptr_t alignment, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                    entry_function *actual);
ENTRY entry_new(uintptr_t size, uintptr_t alignment, uintptr_t c, uintptr_t d, uintptr_t e,
                entry_function *actual);
ENTRY entry_calloc(uintptr_t count, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                   entry_function *actual);
ENTRY entry_realloc(uintptr_t block, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                    entry_function *actual);
ENTRY entry_rearray(uintptr_t block, uintptr_t count, uintptr_t size, uintptr_t d, uintptr_t e,
                    entry_function *actual);
ENTRY entry_memalign(uintptr_t result, uintptr_t alignment, uintptr_t size, uintptr_t d,
                     uintptr_t e, entry_function *actual);
ENTRY entry_resize(uintptr_t block, uintptr_t size, uintptr_t extra, uintptr_t d, uintptr_t e,
                   entry_function *actual);
ENTRY entry_free(uintptr_t block, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                 entry_function *actual);

// The same of a heap that the first argument names.
ENTRY entry_arena_alloc(uintptr_t arena, uintptr_t size, uintptr_t c, uintptr_t d, uintptr_t e,
                        entry_function *actual);
ENTRY entry_arena_aligned(uintptr_t arena, uintptr_t alignment, uintptr_t size, uintptr_t d,
                          uintptr_t e, entry_function *actual);
ENTRY entry_arena_calloc(uintptr_t arena, uintptr_t count, uintptr_t size, uintptr_t d, uintptr_t e,
                         entry_function *actual);
ENTRY entry_arena_realloc(uintptr_t arena, uintptr_t block, uintptr_t size, uintptr_t d,
                          uintptr_t e, entry_function *actual);
ENTRY entry_arena_free(uintptr_t arena, uintptr_t block, uintptr_t c, uintptr_t d, uintptr_t e,
                       entry_function *actual);

// Whatever it takes: the allocator's own work, in which it calls the others.
ENTRY entry_inside(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                   entry_function *actual);

// For modules of other namespaces (namespaces.h), with what these call of the dynamic linker.
ENTRY entry_dlopen(uintptr_t path, uintptr_t flags, uintptr_t c, uintptr_t d, uintptr_t e,
                   entry_function *actual);
ENTRY entry_dlsym(uintptr_t handle, uintptr_t name, uintptr_t c, uintptr_t d, uintptr_t e,
                  entry_function *actual);
ENTRY entry_dlclose(uintptr_t handle, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                    entry_function *actual);
ENTRY entry_prctl(uintptr_t option, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                  entry_function *actual);

#endif
