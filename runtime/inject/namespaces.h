// SPDX-License-Identifier: Apache-2.0
// Modules in other link-map namespaces (dlmopen): no preloaded library is searched for what they
// call, and they have a libc of their own, whose blocks the program's free must not get. So their
// slots for malloc, free and their relatives lead to ways of ours, one for each namespace and
// function, that know the real function (format/attachment.h): the tool of `cairn attach` writes
// these slots in the processes that it attaches to; in all others this room does, when a program
// calls the dynamic linker anyway.
//
// What their constructors allocate on the way, before the slots can be led anywhere, is not seen.
#ifndef RUNTIME_INJECT_NAMESPACES_H
#define RUNTIME_INJECT_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

#if defined(__x86_64__) && !defined(CAIRN_STATIC)

// Leads the slots of all modules that are there now. False: some namespace was left alone. May wait
// for the dynamic linker's lock: only where the program would as well.
bool namespaces_look(void);

// A module is about to be loaded by a call that will not return to us; the next one is to look.
void namespaces_expect(void);
void namespaces_look_if_expected(void);

// Whether dlmopen does the same when it is called by us, in place of the caller that will return to
// `caller`: its RUNPATH may matter, or $ORIGIN.
bool namespaces_may_call(const char *path, uintptr_t caller);

// For struct cairn_attachment; 0 where there are none.
uintptr_t namespaces_ways(void);
uintptr_t namespaces_real(void);

#else

static inline bool namespaces_look(void) {
    return false;
}
static inline void namespaces_expect(void) {}
static inline void namespaces_look_if_expected(void) {}
static inline bool namespaces_may_call(const char *path, uintptr_t caller) {
    (void)path, (void)caller;
    return false;
}
static inline uintptr_t namespaces_ways(void) {
    return 0;
}
static inline uintptr_t namespaces_real(void) {
    return 0;
}

#endif

#endif
