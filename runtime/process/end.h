// SPDX-License-Identifier: Apache-2.0
// The end of this process' recording.
#ifndef RUNTIME_PROCESS_END_H
#define RUNTIME_PROCESS_END_H

// The process ends, or is left by the tool that attached to it.
void process_end(void);

// The process ends without its exit handlers: finishes a file that it writes itself, and waits for
// a tool that is to copy its memory.
void process_exit(void);

// The program may be about to replace its image: finishes a file that this process writes itself.
void process_leave(void);

#endif
