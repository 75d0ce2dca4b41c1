// SPDX-License-Identifier: Apache-2.0
// System calls and function calls made by a stopped thread of another process.
//
// The thread keeps what it had: registers with the floating-point ones, signal mask, its own stack,
// which may be small: calls run on memory of their own. Nothing is written into the process' code.
//
// A call returns to a page that cannot be executed. The fault stops the thread before it becomes a
// signal of the process, whatever that does about SIGSEGV, except if it ignores it: the kernel ends
// that for a fault. There a call returns to an instruction of libc that makes system calls, and all
// system calls of the function are stops, each of which takes some microseconds.
//
// All other threads of the process wait for the call: its thread runs at a higher priority from the
// first call to the last (sched_boost).
#ifndef TOOL_ATTACH_CALL_H
#define TOOL_ATTACH_CALL_H

#include "tool/proc/registers.h"
#include "tool/proc/remote.h"
#include "tool/proc/threads.h"

struct caller {
    const struct remote *remote;
    pid_t tid;
    uint64_t system_call_at;  // address of an instruction that makes system calls
    struct registers saved, now;
    struct vector_registers vectors;
    uint64_t signal_mask;
    struct sched_boost boost;
    uint64_t stack, stack_bytes;  // mapped for the calls; 0: not yet
    bool has_faults;              // calls return to `stack`, whose first page is not executable
    // Called once if a function takes long, since it may wait for a thread that is stopped.
    void (*when_slow)(void *context);
    void *context;
};

// `thread` is stopped. Nothing has changed in it if this fails.
bool caller_begin(struct caller *caller, const struct remote *remote,
                  const struct stopped_thread *thread, uint64_t system_call_at,
                  struct error *error);

// `result` is the kernel's: -errno for a failure, which is no failure of this function.
bool caller_system_call(struct caller *caller, long number,
                        const uint64_t arguments[REGISTERS_ARGUMENTS], int64_t *result,
                        struct error *error);

// Calls a function of the process, on a stack of its own.
bool caller_function(struct caller *caller, uint64_t function,
                     const uint64_t arguments[REGISTERS_ARGUMENTS], uint64_t *result,
                     struct error *error);

// Memory of the process for what a call is given.
bool caller_map(struct caller *caller, uint64_t bytes, uint64_t *address, struct error *error);
void caller_unmap(struct caller *caller, uint64_t address, uint64_t bytes);

// Memory for texts that calls take: the low end of their stack, which has `room` bytes there.
uint64_t caller_room(struct caller *caller, size_t room, struct error *error);

// The thread is as it was when the calls began, and stopped.
bool caller_end(struct caller *caller, struct error *error);

#endif
