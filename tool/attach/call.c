// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/call.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/proc/process.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

#define CALL_STACK_BYTES (512u << 10)
#define SLOW_NS UINT64_C(30000000)
#define SYSTEM_CALL_PATIENCE_NS UINT64_C(10000000000)

enum { SYSTEM_CALL_STOP = SIGTRAP | 0x80, CALL_ROOM_BYTES = 16 << 10 };
enum { SLOW_LOOK_US = 200, STATUS_BYTES = 8192 };

// Signals that the thread's own instructions raise are not blocked: the kernel would end the
// process.
static uint64_t mask_of_calls(void) {
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    uint64_t mask = UINT64_MAX;
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        mask &= ~(UINT64_C(1) << (synchronous[i] - 1));
    return mask;
}

// Bit of a signal in a line of /proc/PID/status such as "SigIgn:". True if it cannot be read.
static bool is_ignored(pid_t pid, int signal) {
    char status[STATUS_BYTES];
    process_read(pid, "status", status, sizeof status);
    const char *field = process_field(status, "SigIgn");
    uint64_t mask = *field ? strtoull(field, NULL, 16) : UINT64_MAX;
    return mask >> (signal - 1) & 1;
}

bool caller_begin(struct caller *caller, const struct remote *remote,
                  const struct stopped_thread *thread, uint64_t system_call_at,
                  struct error *error) {
    uint64_t mask = mask_of_calls();
    caller->remote = remote;
    caller->tid = thread->tid;
    caller->system_call_at = system_call_at;
    caller->saved = caller->now = thread->registers;
    caller->stack = 0;
    caller->has_faults = !is_ignored(remote->pid, SIGSEGV);
    bool is_masked =
        ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof mask, &caller->signal_mask) == 0;
    if (!is_masked && errno == EIO)
        return error_set(error, "this kernel cannot block its signals from outside (Linux 3.11)");
    if (!is_masked || !vector_registers_get(thread->tid, &caller->vectors) ||
        ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof mask, &mask) != 0)
        return error_set(error, "the registers of thread %d cannot be kept: %s", (int)thread->tid,
                         strerror(errno));
    sched_boost(&caller->boost, caller->tid);
    return true;
}

static bool tell_end(struct error *error) {
    return error_set(error, "it has ended meanwhile");
}

static bool is_at_fault(struct caller *caller) {
    return caller->has_faults && caller->stack && registers_get(caller->tid, &caller->now) &&
           registers_pc(&caller->now) == caller->stack;
}

// How a thread goes on: to the next stop at a system call's begin or end, or to a fault.
enum { STEP_SYSTEM_CALL = PTRACE_SYSCALL, STEP_FAULT = PTRACE_CONT };

// Without patience it only checks whether the thread has stopped.
static bool caller_step(struct caller *caller, int how, uint64_t patience_ns, bool *is_late,
                        struct error *error) {
    enum __ptrace_request request = (enum __ptrace_request)how;
    *is_late = false;
    if (patience_ns && ptrace(request, caller->tid, NULL, NULL) != 0) return tell_end(error);
    for (;;) {
        int status = threads_wait(caller->tid, patience_ns);
        if (status == 0) return tell_end(error);
        *is_late = status < 0;
        if (*is_late) return true;
        int signal = WSTOPSIG(status);
        if (signal == SYSTEM_CALL_STOP) return registers_get(caller->tid, &caller->now);
        if (signal == SIGSEGV && is_at_fault(caller)) return true;
        if (status >> 16 == 0 && signal != SIGSTOP)
            return error_set(error, "a call in it failed by signal %d", signal);
        if (ptrace(request, caller->tid, NULL, NULL) != 0) return tell_end(error);
    }
}

// The thread enters the system call, then leaves it.
bool caller_system_call(struct caller *caller, long number,
                        const uint64_t arguments[REGISTERS_ARGUMENTS], int64_t *result,
                        struct error *error) {
    struct registers registers = caller->saved;
    bool is_late;
    registers_for_system_call(&registers, caller->system_call_at, (uint64_t)number, arguments);
    if (!registers_set(caller->tid, &registers)) return tell_end(error);
    for (int stop = 0; stop < 2; stop++) {
        if (!caller_step(caller, STEP_SYSTEM_CALL, SYSTEM_CALL_PATIENCE_NS, &is_late, error))
            return false;
        if (is_late) return error_set(error, "system call %ld takes too long", number);
    }
    *result = registers_result(&caller->now);
    return true;
}

bool caller_map(struct caller *caller, uint64_t bytes, uint64_t *address, struct error *error) {
    const int64_t errors = 4096;
    const uint64_t arguments[] = {
        0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    int64_t result = 0;
    if (!caller_system_call(caller, SYS_mmap, arguments, &result, error)) return false;
    if (result < 0 && result > -errors)
        return error_set(error, "no memory can be mapped in it: %s", strerror((int)-result));
    *address = (uint64_t)result;
    return true;
}

void caller_unmap(struct caller *caller, uint64_t address, uint64_t bytes) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {address, bytes};
    int64_t result = 0;
    caller_system_call(caller, SYS_munmap, arguments, &result, NULL);
}

static bool make_stack(struct caller *caller, struct error *error) {
    if (caller->stack) return true;
    if (!caller_map(caller, CALL_STACK_BYTES, &caller->stack, error)) return false;
    caller->stack_bytes = CALL_STACK_BYTES;
    // a program with an executable stack has nothing else
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {caller->stack, process_page_bytes(),
                                                     PROT_NONE};
    int64_t result = 0;
    if (!caller->has_faults) return true;
    if (!caller_system_call(caller, SYS_mprotect, arguments, &result, error)) return false;
    if (result) caller->has_faults = false;
    return true;
}

uint64_t caller_room(struct caller *caller, size_t room, struct error *error) {
    if (room > CALL_ROOM_BYTES) {
        error_set(error, "a text is too long");
        return 0;
    }
    return make_stack(caller, error) ? caller->stack + process_page_bytes() : 0;
}

// Where calls return to, with the stack as a return leaves it.
static bool has_returned(const struct caller *caller, uint64_t stack) {
    const uint64_t behind = caller->system_call_at + sizeof registers_system_call_code;
    const uint64_t at = caller->has_faults ? caller->stack : behind;
    return registers_pc(&caller->now) == at && registers_stack(&caller->now) == stack;
}

static bool await_return(struct caller *caller, uint64_t returned_stack, struct error *error) {
    bool is_late, was_slow = false;
    int how = caller->has_faults ? STEP_FAULT : STEP_SYSTEM_CALL;
    for (;;) {
        if (!caller_step(caller, how, SLOW_NS, &is_late, error)) return false;
        if (is_late) {
            if (!was_slow && caller->when_slow) caller->when_slow(caller->context);
            was_slow = true;
            while (is_late) {
                usleep(SLOW_LOOK_US);  // so as not to take the processor from it
                if (!caller_step(caller, how, 0, &is_late, error)) return false;
            }
        }
        if (has_returned(caller, returned_stack)) return true;
    }
}

bool caller_function(struct caller *caller, uint64_t function,
                     const uint64_t arguments[REGISTERS_ARGUMENTS], uint64_t *result,
                     struct error *error) {
    const uint64_t word_bytes = sizeof(uint64_t), align = 16;
    struct registers registers = caller->saved;
    if (!make_stack(caller, error)) return false;
    uint64_t top = (caller->stack + caller->stack_bytes - align) & ~(align - 1);
    uint64_t return_to = caller->has_faults ? caller->stack : caller->system_call_at;
    if (!remote_write(caller->remote, top - word_bytes, &return_to, word_bytes))
        return tell_end(error);
    registers_for_call(&registers, function, top, return_to, arguments);
    if (!registers_set(caller->tid, &registers)) return tell_end(error);
    if (!await_return(caller, top, error)) return false;
    *result = caller->has_faults ? (uint64_t)registers_result(&caller->now)
                                 : registers_number(&caller->now);
    if (caller->has_faults) return true;
    // the system call that would begin here is none
    registers = caller->now;
    registers_drop_system_call(&registers);
    bool is_late;
    return registers_set(caller->tid, &registers) &&
           caller_step(caller, STEP_SYSTEM_CALL, SYSTEM_CALL_PATIENCE_NS, &is_late, error) &&
           !is_late;
}

static void drop_stack(struct caller *caller) {
    if (caller->stack) caller_unmap(caller, caller->stack, caller->stack_bytes);
    caller->stack = 0;
}

// The thread was stopped on its way back to the program, where the kernel decides whether a system
// call is started again. It has to be stopped there again before it gets its registers back.
static bool stop_on_way_back(struct caller *caller, struct error *error) {
    struct registers registers;
    if (!registers_get(caller->tid, &registers)) return tell_end(error);
    registers_drop_system_call(&registers);
    registers_set(caller->tid, &registers);
    ptrace(PTRACE_INTERRUPT, caller->tid, NULL, NULL);
    if (ptrace(PTRACE_CONT, caller->tid, NULL, NULL) != 0) return tell_end(error);
    return threads_wait(caller->tid, SYSTEM_CALL_PATIENCE_NS) > 0 || tell_end(error);
}

bool caller_end(struct caller *caller, struct error *error) {
    drop_stack(caller);
    bool is_there = stop_on_way_back(caller, error);
    sched_unboost(&caller->boost, caller->tid);
    if (!is_there) return false;
    bool is_done = vector_registers_set(caller->tid, &caller->vectors) &&
                   registers_set(caller->tid, &caller->saved) &&
                   ptrace(PTRACE_SETSIGMASK, caller->tid, (void *)sizeof caller->signal_mask,
                          &caller->signal_mask) == 0;
    return is_done || tell_end(error);
}
