// SPDX-License-Identifier: Apache-2.0
// Frames of PHP code in the stack of an allocation. PHP links the calls that are at work
// (zend_execute_data), the innermost first. Functions written in PHP are run by one native
// function, execute_ex: a call of it runs several, up to one that is marked as the first of its
// loop. They are put inside of that call, and calls of PHP's built-in functions inside of the one
// that made them. Calls that no native frame runs (in a Fiber: those that resumed it) are
// outermost.
//
// No lock is taken, and nothing of PHP is called but for its version. Only the main thread has
// frames: others, which libraries start, run no PHP in a build without threads. Dangers of reading:
//   - Functions go, and others come to lie there, but not while this thread's own frames run them.
//     They are read directly on pages that were found readable since the program last took memory
//     away, and known by what they say.
//   - Anything, if the program writes where it should not: an address is looked at before it is
//     read, and a chain ends at the limit of stacks.
#ifndef RUNTIME_PHP_PHP_H
#define RUNTIME_PHP_PHP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

struct php {
    uint16_t version;  // major << 8 | minor; CAIRN_PHP_UNKNOWN; 0: no PHP was seen
    bool can_be_read;
    bool misses_events;  // not every allocation is looked at
};

extern HIDDEN struct php php;

// Looks whether there is a PHP; new code was met. Not in a signal handler.
void php_look(void);

// A thread's last stack. One owner.
struct php_thread;

// For stacks of at most `limit` frames; NULL without memory.
struct php_thread *php_thread_make(uint32_t limit);

// The walked stack of the thread of that number with its frames of PHP; `is_careful`: trusts no
// memory.
struct managed_stack php_weave(struct php_thread *thread, struct managed_native native, int32_t tid,
                               bool is_careful);

#endif
