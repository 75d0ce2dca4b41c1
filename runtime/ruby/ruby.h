// SPDX-License-Identifier: Apache-2.0
// Frames of Ruby code in the stack of an allocation. A thread has a context, that of the Fiber that
// it runs, with frames side by side, the innermost first. Methods, blocks and files written in Ruby
// are run by one native function, rb_vm_exec: a call of it runs several, up to one that is marked
// as the first of its loop. They are put inside of that call, and methods in C inside of the one
// that called them. Frames that no native frame runs are outermost.
//
// No lock is taken, and nothing of Ruby is called. A thread's context is its own, so that Threads
// and Ractors are as the main one. Dangers of reading:
//   - Objects are freed and moved, but not while this thread's own frames use them. Names count
//     until Ruby collects (method.h).
//   - Anything, if the program writes where it should not: an address is looked at before it is
//     read, and a chain ends at the limit of stacks.
//   - A Ruby that was built otherwise than its version says: a stack of frames must end with what
//     Ruby puts there. If the first stacks do not, none is read any more.
#ifndef RUNTIME_RUBY_RUBY_H
#define RUNTIME_RUBY_RUBY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

struct ruby {
    uint16_t version;  // major << 8 | minor; CAIRN_RUBY_UNKNOWN; 0: no Ruby was seen
    bool can_be_read;
    bool is_verified;   // a stack of frames ended as it should
    uint32_t refusals;  // (atomic) stacks that did not, before one did
};

extern HIDDEN struct ruby ruby;

// Looks whether there is a Ruby; new code was met. Not in a signal handler.
void ruby_look(void);

// A thread's last stack. One owner.
struct ruby_thread;

// For stacks of at most `limit` frames; NULL without memory.
struct ruby_thread *ruby_thread_make(uint32_t limit);

// The walked stack of the calling thread with its frames of Ruby; `is_careful`: trusts no memory.
struct managed_stack ruby_weave(struct ruby_thread *thread, struct managed_native native,
                                bool is_careful);

// The same in a thread with that context (rb_execution_context_t).
struct managed_stack ruby_weave_context(struct ruby_thread *thread, struct managed_native native,
                                        uint64_t context, bool is_careful);

#endif
