// SPDX-License-Identifier: Apache-2.0
// System calls and function calls made by a stopped thread of another process.
//
// The thread keeps what it had: registers with the floating-point ones, signal mask, its own stack,
// which may be small: calls run on memory of their own.
//
// Calls are made at a stub (stub.h), which leads the thread back to the program whenever the tool
// is killed: between two stops the thread is either at the stub, in a call that returns to it, or
// has all that the program gave it. After a function it sends itself a signal that the program
// ignores: the tool gets that before it is ignored. If the program handles all such signals, or has
// a filter of system calls, all system calls of the function are stops, each of which takes some
// microseconds.
//
// If there is no room for a stub, a call returns to a page that cannot be executed. The fault
// stops the thread before it becomes a signal of the process, except if it ignores that: then a
// call returns to an instruction of libc that makes system calls, and these are stops. If the tool
// is killed meanwhile, so is the process.
//
// All other threads of the process wait for the call: its thread runs at a higher priority from the
// first call to the last (sched_boost).
#ifndef TOOL_ATTACH_CALL_H
#define TOOL_ATTACH_CALL_H

#include "tool/attach/stub.h"
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
    uint64_t stack_top;           // where functions begin
    struct stub stub;             // if there is a place
    int signal;                   // that functions return with; 0: none
    bool has_met_signal;          // the program was sent that one meanwhile
    bool has_faults;              // calls return to `stack`, whose first page is not executable
    // Called once if a function takes long, since it may wait for a thread that is stopped.
    void (*when_slow)(void *context);
    void *context;
};

// The place where calls are made: what a process has for them.
struct call_site {
    uint64_t system_call_at;  // address of an instruction that makes system calls
    uint64_t stub_at;         // a place for a stub (stub_find); 0: none
    bool has_filter;          // of system calls
};

// `thread` is stopped. Nothing has changed in it if this fails.
bool caller_begin(struct caller *caller, const struct remote *remote,
                  const struct stopped_thread *thread, const struct call_site *site,
                  struct error *error);

// Should the tool be killed, the thread's errno gets this value.
void caller_keep_errno(struct caller *caller, uint64_t at, int value);

// `result` is the kernel's: -errno for a failure, which is no failure of this function.
bool caller_system_call(struct caller *caller, long number,
                        const uint64_t arguments[REGISTERS_ARGUMENTS], int64_t *result,
                        struct error *error);

// Opens a file by a system call, one at a time, whose descriptor or -errno is `*file`. Should the
// tool be killed, the thread closes it.
bool caller_open(struct caller *caller, long number, const uint64_t arguments[REGISTERS_ARGUMENTS],
                 int64_t *file, struct error *error);
bool caller_close(struct caller *caller, int64_t file, struct error *error);

// Calls a function of the process, on a stack of its own.
bool caller_function(struct caller *caller, uint64_t function,
                     const uint64_t arguments[REGISTERS_ARGUMENTS], uint64_t *result,
                     struct error *error);

// Memory of the process for what a call is given, one at a time. Should the tool be killed, the
// thread unmaps it.
bool caller_map(struct caller *caller, uint64_t bytes, uint64_t *address, struct error *error);
void caller_unmap(struct caller *caller, uint64_t address, uint64_t bytes);

// Memory for texts that calls take: the low end of their stack, which has `room` bytes there.
uint64_t caller_room(struct caller *caller, size_t room, struct error *error);

// The thread is as it was when the calls began, and stopped.
bool caller_end(struct caller *caller, struct error *error);

#endif
