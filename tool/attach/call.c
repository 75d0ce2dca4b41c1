// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/call.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

#define CALL_STACK_BYTES (512u << 10)
#define SLOW_NS UINT64_C(30000000)
#define SYSTEM_CALL_PATIENCE_NS UINT64_C(10000000000)

enum { SYSTEM_CALL_STOP = SIGTRAP | 0x80, CALL_ROOM_BYTES = 16 << 10 };

// Signals that the thread's own instructions raise are not blocked: the kernel would end the
// process.
static uint64_t mask_of_calls(void) {
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    uint64_t mask = UINT64_MAX;
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        mask &= ~(UINT64_C(1) << (synchronous[i] - 1));
    return mask;
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
    if (!vector_registers_get(thread->tid, &caller->vectors) ||
        ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof mask, &caller->signal_mask) != 0 ||
        ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof mask, &mask) != 0)
        return error_set(error, "the registers of thread %d cannot be kept: %s", (int)thread->tid,
                         strerror(errno));
    return true;
}

static bool tell_end(struct error *error) {
    return error_set(error, "it has ended meanwhile");
}

// Goes on to the next stop at a system call's begin or end.
static bool caller_step(struct caller *caller, uint64_t patience_ns, bool *is_late,
                        struct error *error) {
    *is_late = false;
    if (patience_ns && ptrace(PTRACE_SYSCALL, caller->tid, NULL, NULL) != 0) return tell_end(error);
    for (;;) {
        int status = threads_wait(caller->tid, patience_ns);
        if (status == 0) return tell_end(error);
        *is_late = status < 0;
        if (*is_late) return true;
        int signal = WSTOPSIG(status);
        if (signal == SYSTEM_CALL_STOP) return registers_get(caller->tid, &caller->now);
        if (status >> 16 == 0 && signal != SIGSTOP)
            return error_set(error, "a call in it failed by signal %d", signal);
        if (ptrace(PTRACE_SYSCALL, caller->tid, NULL, NULL) != 0) return tell_end(error);
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
        if (!caller_step(caller, SYSTEM_CALL_PATIENCE_NS, &is_late, error)) return false;
        if (is_late) return error_set(error, "system call %ld takes too long", number);
    }
    *result = registers_result(&caller->now);
    return true;
}

static bool make_stack(struct caller *caller, struct error *error) {
    const uint64_t arguments[] = {
        0, CALL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    int64_t result = 0;
    if (caller->stack) return true;
    if (!caller_system_call(caller, SYS_mmap, arguments, &result, error)) return false;
    if (result < 0 && result > -4096)
        return error_set(error, "no memory can be mapped in it: %s", strerror((int)-result));
    caller->stack = (uint64_t)result;
    caller->stack_bytes = CALL_STACK_BYTES;
    return true;
}

uint64_t caller_room(struct caller *caller, size_t room, struct error *error) {
    if (room > CALL_ROOM_BYTES) {
        error_set(error, "a text is too long");
        return 0;
    }
    return make_stack(caller, error) ? caller->stack : 0;
}

// At the instruction that calls return to, with the stack as a return leaves it.
static bool has_returned(const struct caller *caller, uint64_t stack) {
    const uint64_t at = caller->system_call_at + sizeof registers_system_call_code;
    return registers_pc(&caller->now) == at && registers_stack(&caller->now) == stack;
}

// While the function makes system calls of its own, each is a stop at its begin and at its end.
static bool await_return(struct caller *caller, uint64_t returned_stack, struct error *error) {
    bool is_late, was_slow = false;
    uint64_t patience = SLOW_NS;
    for (;;) {
        if (!caller_step(caller, patience, &is_late, error)) return false;
        patience = SLOW_NS;
        if (is_late) {
            if (!was_slow && caller->when_slow) caller->when_slow(caller->context);
            was_slow = true;
            while (is_late)
                if (!caller_step(caller, 0, &is_late, error)) return false;
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
    uint64_t stack = top - word_bytes;
    if (!remote_write(caller->remote, stack, &caller->system_call_at, word_bytes))
        return tell_end(error);
    registers_for_call(&registers, function, stack, arguments);
    if (!registers_set(caller->tid, &registers)) return tell_end(error);
    if (!await_return(caller, top, error)) return false;
    *result = registers_number(&caller->now);
    // the system call that would begin here is none
    registers = caller->now;
    registers_drop_system_call(&registers);
    bool is_late;
    return registers_set(caller->tid, &registers) &&
           (caller_step(caller, SYSTEM_CALL_PATIENCE_NS, &is_late, error) && !is_late);
}

static void drop_stack(struct caller *caller) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {caller->stack, caller->stack_bytes};
    int64_t result = 0;
    if (caller->stack) caller_system_call(caller, SYS_munmap, arguments, &result, NULL);
    caller->stack = 0;
}

// The thread was stopped on its way back to the program, where the kernel decides whether a system
// call is started again. It has to be stopped there again before it gets its registers back.
bool caller_end(struct caller *caller, struct error *error) {
    struct registers registers = caller->now;
    drop_stack(caller);
    registers_drop_system_call(&registers);
    if (!registers_get(caller->tid, &registers)) return tell_end(error);
    registers_drop_system_call(&registers);
    registers_set(caller->tid, &registers);
    ptrace(PTRACE_INTERRUPT, caller->tid, NULL, NULL);
    if (ptrace(PTRACE_CONT, caller->tid, NULL, NULL) != 0) return tell_end(error);
    int status = threads_wait(caller->tid, SYSTEM_CALL_PATIENCE_NS);
    if (status <= 0) return tell_end(error);
    bool is_done = vector_registers_set(caller->tid, &caller->vectors) &&
                   registers_set(caller->tid, &caller->saved) &&
                   ptrace(PTRACE_SETSIGMASK, caller->tid, (void *)sizeof caller->signal_mask,
                          &caller->signal_mask) == 0;
    return is_done || tell_end(error);
}
