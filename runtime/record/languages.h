// SPDX-License-Identifier: Apache-2.0
// Stacks with frames of other languages than those that are native code: the one place that knows
// which language's rooms to ask.
#ifndef RUNTIME_RECORD_LANGUAGES_H
#define RUNTIME_RECORD_LANGUAGES_H

#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/thread.h"
#include "runtime/unwind/walk.h"

// The thread's stack at a hook's frame, with the frames of the language that is there. Valid until
// the next but one.
struct managed_stack languages_stack(struct thread *thread, uintptr_t *frame);
// The event of that stack is over.
void languages_leave(struct thread *thread);

// New code was met: its modules are entered before its frames are encoded.
COLD void languages_note_modules(struct walk_trace *trace);

#endif
