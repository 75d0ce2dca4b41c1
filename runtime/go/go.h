// SPDX-License-Identifier: Apache-2.0
// Frames of Go code in the stack of an allocation that C made for it (cgo). Go calls C on another
// stack, that of the thread: its function runtime.asmcgocall leaves there whose call it is (g) and
// how deep that one's own stack was. From there on outwards the goroutine's stack is walked by the
// sizes of frames in Go's own table; where C called Go back, native code goes on, and perhaps more
// Go.
//
// No lock is taken, and nothing of Go is called. While a goroutine is in C its stack stays where it
// is: Go moves stacks only of those that run Go code. Where the words are, the instructions of
// asmcgocall say, so that no version of Go has offsets here; with others than those known, nothing
// is read. Every address is looked at before it is read.
#ifndef RUNTIME_GO_GO_H
#define RUNTIME_GO_GO_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

struct go {
    uint32_t version;  // 19 of Go 1.19; CAIRN_GO_UNKNOWN; 0: no Go was seen
    bool can_be_read;
};

extern HIDDEN struct go go;

// Looks whether one of the frames is of a Go program's module; new code was met. Not in a signal
// handler. The first module that has Go code is the one that is read.
void go_look(struct managed_native native);

// Takes this table as the program's.
struct go_table;
void go_use(const struct go_table *found);

// A thread's last stack. One owner.
struct go_thread;

// For stacks of at most `limit` frames; NULL without memory.
struct go_thread *go_thread_make(uint32_t limit);

// The walked stack of this thread with its Go frames; `is_careful`: trusts no memory.
struct managed_stack go_weave(struct go_thread *thread, struct managed_native native,
                              bool is_careful, const struct managed_walker *walker);

#endif
