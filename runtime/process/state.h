// SPDX-License-Identifier: Apache-2.0
// Whether this process is recorded, as one word that all may ask for.
#ifndef RUNTIME_PROCESS_STATE_H
#define RUNTIME_PROCESS_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum process_state {
    PROCESS_NEW,       // nothing tried yet
    PROCESS_STARTING,  // one thread is opening the recording; events meanwhile are not recorded
    PROCESS_RECORDING,
    PROCESS_INERT,  // this process is not recorded
};

enum process_state process_state(void);
// From one state to another; false: another thread has moved it. The second does not ask.
bool process_move(enum process_state from, enum process_state to);
void process_become(enum process_state state);

// Moves to PROCESS_STARTING, and notes that it is this thread which opens the recording.
bool process_begin(enum process_state from);
// True in the thread that began last: it would wait for itself.
bool process_is_starter(void);

// As if nothing had been tried: before a new start in a process that was attached to.
void process_forget(void);

// Both lie in start.c, above all others; a thread's first event calls them from below.
// Opens the recording; false if it is not this thread's turn or there will be none.
bool process_start(void);
// The recording of a forked child: a new one, which knows the blocks that the child inherited.
bool process_start_forked(void);

// An allocation failed. True if the limits of the process have changed unseen (a raw system call,
// another process) and memory of ours was given back, so that it may succeed now. `here` is the
// hook's frame; the thread's gate is not BUSY. Lies in limits.c.
bool process_relieve(uintptr_t here);

#endif
