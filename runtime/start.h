// SPDX-License-Identifier: Apache-2.0
// The recording of this process: opening it, and marking its end.
#ifndef RUNTIME_START_H
#define RUNTIME_START_H

#include <stdbool.h>
#include <stdint.h>

enum process_state {
    PROCESS_NEW,       // nothing tried yet
    PROCESS_STARTING,  // one thread is opening the recording; events meanwhile are not recorded
    PROCESS_RECORDING,
    PROCESS_INERT,  // this process is not recorded
};

enum process_state process_state(void);

// As if nothing had been tried: before a new start in a process that was attached to.
void process_forget(void);

// Opens the recording; false if it is not this thread's turn or there will be none.
bool process_start(void);

// The recording of a forked child: a new one, which knows the blocks that the child inherited.
bool process_start_forked(void);

// The program is about to limit its address space: gives back what is only reserved.
void process_release_space(void);

// In a child forked in the middle of an event: what is left of that event goes into a private copy
// of the parent's recording.
void process_detach(void);

// The process ends without its exit handlers: finishes a file that it writes itself.
void process_exit(void);

// The program may be about to replace its image: finishes a file that this process writes itself.
void process_leave(void);

#endif
