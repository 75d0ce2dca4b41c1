// SPDX-License-Identifier: Apache-2.0
// Frames of Java code (HotSpot) in the stack of an allocation. Native code that Java calls leaves a
// frame anchor in its thread's object: from there on outwards the stack is Java's, up to the stub
// by which native code called Java; there native code goes on, and perhaps more Java.
//
// No lock is taken, and nothing of the JVM is called. What could be wrong with what is read:
//   - Classes, compiled code and threads go at any time, but not those that a frame of this thread
//     runs. What is met for the first time is read by system calls, which fail where there is no
//     memory. Directly are read: libjvm's own data; this thread's object, once the list of threads
//     has it, as long as the thread has it among its own data (pthread_getspecific), or else the
//     list, which a system call asks; this thread's stack; and what was found before to be a method
//     or compiled code. These lie in memory that libjvm maps itself, or are live blocks of malloc.
//     Pages count as readable until the program next takes memory away (memory_changes).
//   - Anything, if the program writes where it should not: addresses that say something else than
//     before are read by system calls again, stacks only go outwards, and chains end after as many
//     frames as a stack may have.
// Code that has no anchor, as a leaf call of the interpreter's, has native frames only. Frames of a
// virtual thread that lie in Java's heap are not read: their collector moves them at any time. The
// way ends at the stub that would fetch them.
#ifndef RUNTIME_JAVA_JAVA_H
#define RUNTIME_JAVA_JAVA_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/stack.h"
#include "runtime/sys/sys.h"

struct java {
    uint32_t version;  // JDK's, as 17; 0: no JVM was seen
    bool can_be_read;
};

extern HIDDEN struct java java;

// Looks whether there is a JVM by now; new code was met. Not in a signal handler.
void java_look(void);

// A thread's last stack. One owner.
struct java_thread;

// Asks threads for their own data by this from now on, pthread_getspecific: it neither locks nor
// allocates. NULL: they are not asked.
void java_use_own_data(void *(*own_data)(unsigned key));

// Whether the thread's object is known, and the thread has it among its own data, as HotSpot keeps
// it for its signal handlers.
bool java_has_own_object(const struct java_thread *thread);

// For stacks of at most `limit` frames; NULL without memory.
struct java_thread *java_thread_make(uint32_t limit);

// The walked stack of this thread (outermost first) with its Java frames.
struct managed_stack java_weave(struct java_thread *thread, struct managed_native native, int tid,
                                const struct managed_walker *walker);

#endif
