// SPDX-License-Identifier: Apache-2.0
// Tells whether the event that holds a thread's gate goes on when another one comes.
//
// A signal handler that interrupts an event has it among its callers. If it has not, the handler
// has jumped out of it (longjmp), and its frame is gone; or it has switched to the stack of a
// coroutine, and the event waits on its own stack. One that waits has left all its frames as they
// were, on a stack that the present one shares no byte with. So whatever leads from the held frame
// into the present stack, or finds another return address in it, says that it is gone.
#ifndef RUNTIME_THREAD_HOLDER_H
#define RUNTIME_THREAD_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/unwind/walk.h"

struct holder_look {
    uintptr_t frame, return_address;  // of the hook whose event it is, as they were then
    uintptr_t here;                   // the frame of the hook that asks
    uintptr_t live;                   // the innermost frame: the present stack begins here
    uintptr_t code_start, code_end;   // the code of hooks
    struct walk_range known;          // memory of a stack that can be read
};

enum holder_nesting {
    HOLDER_CALL,     // the event called what asks
    HOLDER_HANDLER,  // it was interrupted by it, or waits elsewhere
    HOLDER_GONE,
};

enum holder_nesting holder_look(const struct holder_look *look);

#endif
