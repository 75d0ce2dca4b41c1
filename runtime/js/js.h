// SPDX-License-Identifier: Apache-2.0
// Frames of JavaScript (V8, as node has it) in the stack of an allocation. Code of V8's keeps frame
// pointers, and the native walk goes along them where there is no unwind information: each of those
// frames has what it runs in words below its frame pointer, or a number that says that it runs no
// function.
//
// No lock is taken, and nothing of V8 is called. What could be wrong with what is read:
//   - Objects move, and code goes, but not while this thread is in native code, nor those that its
//     own frames reach. These are read directly on pages that were found readable since the program
//     last took memory away, and known by what they say. What is met for the first time is read by
//     system calls, which fail where there is no memory.
//   - Anything, if the program writes where it should not: an address is looked at before it is
//     read, and tables end where their memory does.
#ifndef RUNTIME_JS_JS_H
#define RUNTIME_JS_JS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

struct js {
    uint16_t version;  // of V8, major << 8 | minor; 0: no V8 was seen
    bool can_be_read;
};

extern HIDDEN struct js js;

// Looks whether there is a V8; new code was met. Not in a signal handler.
void js_look(void);

// A thread's last stack. One owner.
struct js_thread;

// For stacks of at most `limit` frames; NULL without memory.
struct js_thread *js_thread_make(uint32_t limit);

// The walked stack of this thread with its frames of JavaScript; `is_careful`: trusts no memory.
struct managed_stack js_weave(struct js_thread *thread, struct managed_native native,
                              bool is_careful);

#endif
