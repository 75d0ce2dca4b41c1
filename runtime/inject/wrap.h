// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap): functions that libraries of the program export are led
// through a hook, which counts their blocks as those of a pool. The slots are rewritten through
// which modules call them (got_patch.h), so that calls within the library that has them are its own
// affair.
//
// Where the tool attaches, it finds the functions and leads their callers (tool/attach/wrapped.h).
//
// A row may lie. The hook keeps every register that can hold an argument or a result, reads those
// that the row names as numbers, and follows none; a result that is written through a pointer is
// read by a system call that fails where there is no memory. What is wrong then are the row's
// figures.
#ifndef RUNTIME_INJECT_WRAP_H
#define RUNTIME_INJECT_WRAP_H

#include <stdbool.h>

#if defined(CAIRN_STATIC) || !defined(__x86_64__)
static inline bool wrap_is_wanted(void) {
    return false;
}
static inline void wrap_offer(void) {}
static inline void wrap_open(void) {}
static inline void wrap_look(void) {}
static inline void wrap_inherit(void) {}
#else
// Tells the tool where the hooks are, before it is spoken to: it leads functions of the executable
// to them, by a jump where they begin.
void wrap_offer(void);

// The recording has room for what the heaps hold.
bool wrap_is_wanted(void);

// Reads what is wanted, once the recording is open.
void wrap_open(void);

// Leads the calls of modules that were loaded since.
void wrap_look(void);

// In a forked child: no other thread opens a heap.
void wrap_inherit(void);
#endif

#endif
