// SPDX-License-Identifier: Apache-2.0
// Frames of Python code (CPython 3.8 to 3.15), between the native ones of the thread's stack.
//
// The interpreter's lock is never taken. A thread's own chain of frames changes only by its own
// doing, so that at an allocation it stands still, and it stays where it is. What could be wrong:
//   - The thread does not hold the interpreter's lock and the program is ending: another thread may
//     take its state away at any moment. Without the lock memory is therefore read only as long as
//     the interpreter does not end, and the thread that ends it waits, before it unmaps memory,
//     until nobody is at it (python_await_readers). From then on, and inside a signal
//     handler, memory is read by system calls, which fail where there is none.
//   - A code object is gone and another one is at its address: a code is known by what it says
//     (name, file, table of lines), and looked at again wherever the chain has changed.
//   - Anything, if the program writes where it should not: an address is read only where there is
//     memory (read.h), and chains end after as many frames as a stack may have.
// With the lock these are the frames of the interpreter that the thread runs, which may be a
// sub-interpreter; without it those of the last one, before 3.12 of the main one.
#ifndef RUNTIME_PYTHON_PYTHON_H
#define RUNTIME_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

struct python {
    uint32_t version;  // as Py_Version: 0x030b02f0 is 3.11.2; 0: no Python is linked
    bool can_be_read;  // it is a version whose frames are known
};

extern HIDDEN struct python python;

// Looks whether the program is a Python, or linked to one. May ask the dynamic linker.
void python_find(void);

// A thread's last stack. One owner.
struct python_thread;

// For stacks of at most `limit` frames; NULL without memory.
struct python_thread *python_thread_make(uint32_t limit);

// Before the program unmaps memory, and at events: once the interpreter ends, no thread is reading
// its frames without the lock when this returns, and none begins to. Waits for those that are at it
// a tenth of a second at most, once.
COLD void python_await_readers(void);
bool python_is_ending(void);

// The walked stack of this thread (at most as many frames as the limit) with the frames of Python
// code put in: each inside of the native frame that runs it. `is_careful`: trusts no memory. Keeps
// errno.
struct managed_stack python_weave(struct python_thread *thread, struct managed_native native,
                                  bool is_careful);
// The event is over for which a stack was woven: from now on the thread may be in other frames.
void python_leave(struct python_thread *thread);

#endif
