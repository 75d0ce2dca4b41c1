// SPDX-License-Identifier: Apache-2.0
// Memory for what a thread remembers of its last stack: the trace, the hashes of its parts, and the
// first of its table.
//
// There may be thousands of threads, most of which see few stacks, none of them deep. So a thread
// begins with two pages, which hold stacks of STACK_MEMORY_FRAMES, and takes more where it meets a
// deeper one. Of many threads it touches but the first page until it meets one of more than
// STACK_FIRST_FRAMES. Address space that is only reserved costs too: tables of pages, and time in
// each call that maps memory.
#ifndef RUNTIME_THREAD_STACK_MEMORY_H
#define RUNTIME_THREAD_STACK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

enum { STACK_MEMORY_BYTES = 8192, STACK_MEMORY_FRAMES = 46, STACK_FIRST_FRAMES = 12 };

// Gives a new thread its first memory, STACK_MEMORY_BYTES of zeroes at a multiple of that; and room
// for the deepest stack where other threads' frames, of languages, are woven into them. False
// without memory.
bool stack_memory_begin(struct thread *thread, uint8_t *memory);

// Frames of the deepest stack that a thread may come to have.
uint32_t stack_memory_limit(void);

// Address space is short: no stack becomes deeper than some 2,000 frames, and `thread` gives back
// what it has beyond, if its present stack fits; others' memory is in use.
void stack_memory_narrow(struct thread *thread);

// Gives back what a thread has beyond its first memory, which lies among that of others, in a
// process that walks no stacks any more.
void stack_memory_release(struct thread *thread);

// Takes room for deeper stacks than the thread, whose gate is BUSY, has room for now. False: there
// is none.
bool stack_memory_take_more(struct thread *thread);

#endif
