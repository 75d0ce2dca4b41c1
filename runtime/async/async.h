// SPDX-License-Identifier: Apache-2.0
// Who awaits a coroutine that a scheduler resumes, for the stack of an allocation, on demand.
//
// A coroutine's native stack has its own function and what resumed it, not the coroutines that wait
// for it. The program says who waits (include/cairn/cairn.h, cairn_awaiters; in C++
// cairn::context_promise does): a chain of places in code, each the one at which a coroutine
// awaits. Chains are never changed or freed, so that none leads to a coroutine that is gone: the
// same places have the same number.
//
// A chain goes in outside of the native frame of the coroutine that it is of, which is known by an
// address inside of that frame. Where an awaiting function is itself on the native stack further
// out (it resumed the other one itself), it is not put in twice; the rest of the chain follows it
// there.
#ifndef RUNTIME_ASYNC_ASYNC_H
#define RUNTIME_ASYNC_ASYNC_H

#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

// Where a coroutine awaits: a return address, and the function around it, as far as that is known.
struct async_place {
    uintptr_t pc, start, end;
};

// The number of the chain `outer` (0: nobody awaits) with a place more, its innermost; 0: it was
// not there before (async_seek), without room (async_awaited).
uint32_t async_seek(uint32_t outer, uintptr_t pc);
uint32_t async_awaited(uint32_t outer, const struct async_place *place);

// The coroutines that a thread runs. One owner.
struct async_thread;

// For stacks of at most `limit` frames; NULL without memory.
struct async_thread *async_thread_make(uint32_t limit);

// A coroutine runs that this chain awaits; `frame` is an address in its native frame. Until it is
// suspended; those that it resumes in between are suspended before it.
void async_resumed(struct async_thread *thread, uint32_t chain, uintptr_t frame);
void async_suspended(struct async_thread *thread);

// The walked stack of this thread with the chains of the coroutines on it.
struct managed_stack async_weave(struct async_thread *thread, struct managed_native native);

#endif
