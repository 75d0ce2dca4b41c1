// SPDX-License-Identifier: Apache-2.0
// The frames of Python code that a thread is in, as the interpreter has them linked.
#ifndef RUNTIME_PYTHON_CHAIN_H
#define RUNTIME_PYTHON_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"

// One frame of Python code; or a call of the interpreter's loop, which has no code.
struct link {
    uintptr_t frame, code, instruction, previous;
    uintptr_t
        place;     // on the C stack: of the call of the interpreter's loop that runs it; 0: unknown
    uintptr_t pc;  // pseudo address (FRAME_PYTHON), or 0: it is not shown
    uint32_t woven;  // frames of the thread's stack up to it, outermost first
};

// Keeps together those words of a link that are compared at each event: there are many links.
struct link_words {
    uintptr_t frame, instruction, previous;
    uint64_t is_call;
};

enum { CHAIN_PLACES = 1 << 15 };

// A thread's chain as it was read last. One owner.
struct chain {
    struct link *links;        // outermost first
    struct link *fresh;        // innermost first, in the making
    struct link_words *words;  // of the links, in their order
    uint32_t *places;          // of frames by their address, in links; may be old
    uint32_t count, limit;
    uint32_t kept;         // outer links that are as they were before
    uint64_t read_ns;      // when the event ended for which a deep one was read; 0: not known
    uintptr_t other, own;  // the last state that had the lock and is another thread's; 0: none
};

// Reads the interpreter's functions from the dynamic linker. False if one is missing.
bool chain_find(void);

// False without memory.
bool chain_init(struct chain *chain, uint32_t limit);

// The state of the calling thread; 0: it has none. `has_lock`: it holds the interpreter's lock.
uintptr_t chain_state(struct chain *chain, bool *has_lock);

// Reads the chain of a state by the layout of the interpreter; how many links it has. The first
// chain->kept of them have their `pc`, and so far as chain->count says, they are those of before:
// the caller sets that to the result once all have one.
uint32_t chain_read(struct chain *chain, struct memory_reader *memory, uintptr_t state);

// The event ends: the thread goes on from here.
void chain_leave(struct chain *chain);

// True once the interpreter has begun to end: it takes away what other threads have.
bool chain_is_ending(void);

// Where a native function begins and ends that runs one frame of Python code a call; 0: the chain
// knows places by itself.
extern HIDDEN uintptr_t chain_loop, chain_loop_end;

#endif
