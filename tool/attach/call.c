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

enum { SYSTEM_CALL_STOP = SIGTRAP | 0x80, CALL_ROOM_BYTES = 16 << 10, CALL_ALIGN = 64 };
enum { SLOW_LOOK_US = 200, STATUS_BYTES = 8192 };

static uint64_t bit_of(int signal) {
    return signal ? UINT64_C(1) << (signal - 1) : 0;
}

// Signals that the thread's own instructions raise are not blocked: the kernel would end the
// process.
static uint64_t mask_of_calls(void) {
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    uint64_t mask = UINT64_MAX;
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        mask &= ~bit_of(synchronous[i]);
    return mask;
}

// A line of /proc/PID/status such as "SigIgn:". All signals if it cannot be read.
static uint64_t signals_of(const char *status, const char *name) {
    const char *field = process_field(status, name);
    return *field ? strtoull(field, NULL, 16) : UINT64_MAX;
}

// One that does nothing unless the program handles it; 0: there is none.
static int choose_signal(const char *status) {
    static const int harmless[] = {SIGURG, SIGWINCH};
    uint64_t caught = signals_of(status, "SigCgt");
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (!(caught & bit_of(harmless[i]))) return harmless[i];
    return 0;
}

// From here on the thread gets back on its own, if there is a stub.
static bool enter_stub(struct caller *caller, const struct call_site *site) {
    if (!stub_write(&caller->stub, site->stub_at, caller->remote, &caller->saved,
                    caller->signal_mask))
        return true;
    stub_set_signal(&caller->stub, caller->signal);
    if (registers_set(caller->tid, &caller->stub.back)) return true;
    stub_erase(&caller->stub);
    return false;
}

static bool leave_stub(struct caller *caller) {
    bool is_done = vector_registers_set(caller->tid, &caller->vectors);
    is_done = ptrace(PTRACE_SETSIGMASK, caller->tid, (void *)sizeof caller->signal_mask,
                     &caller->signal_mask) == 0 &&
              is_done;
    is_done = registers_set(caller->tid, &caller->saved) && is_done;
    if (is_done) stub_erase(&caller->stub);
    return is_done;
}

bool caller_begin(struct caller *caller, const struct remote *remote,
                  const struct stopped_thread *thread, const struct call_site *site,
                  struct error *error) {
    char status[STATUS_BYTES];
    process_read(remote->pid, "status", status, sizeof status);
    caller->remote = remote;
    caller->tid = thread->tid;
    caller->system_call_at = site->system_call_at;
    caller->saved = caller->now = thread->registers;
    caller->stack = 0;
    caller->signal = site->has_filter || !site->stub_at ? 0 : choose_signal(status);
    caller->has_met_signal = false;
    uint64_t mask = mask_of_calls() & ~bit_of(caller->signal);
    bool is_masked =
        ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof mask, &caller->signal_mask) == 0;
    if (!is_masked && errno == EIO)
        return error_set(error, "this kernel cannot block its signals from outside (Linux 3.11)");
    bool is_kept = is_masked && vector_registers_get(thread->tid, &caller->vectors) &&
                   enter_stub(caller, site);
    if (is_kept && ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof mask, &mask) != 0) {
        leave_stub(caller);
        is_kept = false;
    }
    if (!is_kept)
        return error_set(error, "the registers of thread %d cannot be kept: %s", (int)thread->tid,
                         strerror(errno));
    caller->has_faults = !caller->stub.place && !(signals_of(status, "SigIgn") & bit_of(SIGSEGV));
    if (caller->stub.place) caller->system_call_at = stub_entry(&caller->stub, STUB_SYSTEM_CALL);
    sched_boost(&caller->boost, caller->tid);
    if (caller->boost.is_taken) stub_set_scheduling(&caller->stub, &caller->boost.usual);
    return true;
}

void caller_keep_errno(struct caller *caller, uint64_t at, int value) {
    stub_set_errno(&caller->stub, at, value);
}

static bool tell_end(struct error *error) {
    return error_set(error, "it has ended meanwhile");
}

static bool is_at_fault(struct caller *caller) {
    return caller->has_faults && caller->stack && registers_get(caller->tid, &caller->now) &&
           registers_pc(&caller->now) == caller->stack;
}

// Functions return with a signal, and that one is not the program's.
static bool is_at_signal(struct caller *caller) {
    return caller->signal && registers_get(caller->tid, &caller->now) &&
           stub_is_returned(&caller->stub, &caller->now, true);
}

// Ways for a thread to go on: to the next stop at a system call's begin or end, or to a signal.
enum { STEP_SYSTEM_CALL = PTRACE_SYSCALL, STEP_SIGNAL = PTRACE_CONT };

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
        bool is_harmless = status >> 16 == 0 && signal && signal == caller->signal;
        if (is_harmless && is_at_signal(caller)) return true;
        if (is_harmless) caller->has_met_signal = true;
        if (status >> 16 == 0 && signal != SIGSTOP && !is_harmless)
            return error_set(error, "a call in it failed by signal %d", signal);
        if (ptrace(request, caller->tid, NULL, NULL) != 0) return tell_end(error);
    }
}

// The thread enters the system call at that entry, then leaves it.
static bool make_system_call(struct caller *caller, enum stub_entry entry, long number,
                             const uint64_t arguments[REGISTERS_ARGUMENTS], int64_t *result,
                             struct error *error) {
    const uint64_t at =
        caller->stub.place ? stub_entry(&caller->stub, entry) : caller->system_call_at;
    struct registers registers = caller->saved;
    bool is_late;
    registers_for_system_call(&registers, at, (uint64_t)number, arguments);
    if (!registers_set(caller->tid, &registers)) return tell_end(error);
    for (int stop = 0; stop < 2; stop++) {
        if (!caller_step(caller, STEP_SYSTEM_CALL, SYSTEM_CALL_PATIENCE_NS, &is_late, error))
            return false;
        if (is_late) return error_set(error, "system call %ld takes too long", number);
    }
    *result = registers_result(&caller->now);
    return true;
}

bool caller_system_call(struct caller *caller, long number,
                        const uint64_t arguments[REGISTERS_ARGUMENTS], int64_t *result,
                        struct error *error) {
    return make_system_call(caller, STUB_SYSTEM_CALL, number, arguments, result, error);
}

bool caller_open(struct caller *caller, long number, const uint64_t arguments[REGISTERS_ARGUMENTS],
                 int64_t *file, struct error *error) {
    if (!make_system_call(caller, STUB_OPEN, number, arguments, file, error)) return false;
    if (*file >= 0) stub_set_file(&caller->stub, *file);
    return true;
}

bool caller_close(struct caller *caller, int64_t file, struct error *error) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {(uint64_t)file};
    int64_t unused = 0;
    if (!make_system_call(caller, STUB_CLOSE, SYS_close, arguments, &unused, error)) return false;
    stub_set_file(&caller->stub, -1);
    return true;
}

// Maps memory that the thread unmaps itself if the tool is killed, which is to tell the stub of it.
static bool map(struct caller *caller, uint64_t bytes, uint64_t *address, struct error *error) {
    const int64_t errors = 4096;
    const uint64_t arguments[] = {
        0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    int64_t result = 0;
    if (!make_system_call(caller, STUB_MAP, SYS_mmap, arguments, &result, error)) return false;
    if (result < 0 && result > -errors)
        return error_set(error, "no memory can be mapped in it: %s", strerror((int)-result));
    *address = (uint64_t)result;
    return true;
}

static void unmap(struct caller *caller, uint64_t address, uint64_t bytes) {
    const uint64_t arguments[REGISTERS_ARGUMENTS] = {address, bytes};
    int64_t result = 0;
    make_system_call(caller, STUB_UNMAP, SYS_munmap, arguments, &result, NULL);
}

bool caller_map(struct caller *caller, uint64_t bytes, uint64_t *address, struct error *error) {
    if (!map(caller, bytes, address, error)) return false;
    stub_set_room(&caller->stub, *address, bytes);
    return true;
}

void caller_unmap(struct caller *caller, uint64_t address, uint64_t bytes) {
    unmap(caller, address, bytes);
    stub_set_room(&caller->stub, 0, 0);
}

// The thread gives them back to itself, from the top of the stack.
static bool keep_vectors(struct caller *caller) {
    const struct vector_registers *vectors = &caller->vectors;
    caller->stack_top = (caller->stack_top - vectors->used) & ~(uint64_t)(CALL_ALIGN - 1);
    if (!remote_write(caller->remote, caller->stack_top, vectors->bytes, vectors->used))
        return false;
    stub_set_vectors(&caller->stub, caller->stack_top, vectors->kind);
    return true;
}

static bool make_stack(struct caller *caller, struct error *error) {
    if (caller->stack) return true;
    if (!map(caller, CALL_STACK_BYTES, &caller->stack, error)) return false;
    caller->stack_bytes = CALL_STACK_BYTES;
    stub_set_stack(&caller->stub, caller->stack, caller->stack_bytes);
    caller->stack_top =
        (caller->stack + caller->stack_bytes - CALL_ALIGN) & ~(uint64_t)(CALL_ALIGN - 1);
    if (caller->stub.place && !keep_vectors(caller)) return tell_end(error);
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

static uint64_t return_to(const struct caller *caller) {
    if (caller->stub.place) return stub_entry(&caller->stub, STUB_RETURN);
    return caller->has_faults ? caller->stack : caller->system_call_at;
}

// Tells if it stands where calls return to, with the stack as a return leaves it.
static bool has_returned(const struct caller *caller, uint64_t stack) {
    if (caller->stub.place)
        return stub_is_returned(&caller->stub, &caller->now, caller->signal != 0) &&
               registers_stack(&caller->now) == stack;
    const uint64_t behind = caller->system_call_at + sizeof registers_system_call_code;
    const uint64_t at = caller->has_faults ? caller->stack : behind;
    return registers_pc(&caller->now) == at && registers_stack(&caller->now) == stack;
}

static bool await_return(struct caller *caller, uint64_t returned_stack, struct error *error) {
    bool is_late, was_slow = false;
    int how = caller->has_faults || caller->signal ? STEP_SIGNAL : STEP_SYSTEM_CALL;
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

// The system call that would begin where it stands is none.
static bool drop_system_call(struct caller *caller, struct error *error) {
    struct registers registers = caller->now;
    bool is_late;
    registers_drop_system_call(&registers);
    return registers_set(caller->tid, &registers) &&
           caller_step(caller, STEP_SYSTEM_CALL, SYSTEM_CALL_PATIENCE_NS, &is_late, error) &&
           !is_late;
}

bool caller_function(struct caller *caller, uint64_t function,
                     const uint64_t arguments[REGISTERS_ARGUMENTS], uint64_t *result,
                     struct error *error) {
    const uint64_t word_bytes = sizeof(uint64_t);
    struct registers registers = caller->saved;
    if (!make_stack(caller, error)) return false;
    uint64_t top = caller->stack_top, back = return_to(caller);
    if (!remote_write(caller->remote, top - word_bytes, &back, word_bytes)) return tell_end(error);
    registers_for_call(&registers, function, top, back, arguments);
    if (!registers_set(caller->tid, &registers)) return tell_end(error);
    if (!await_return(caller, top, error)) return false;
    if (caller->stub.place)
        *result = stub_result(&caller->now);
    else if (caller->has_faults)
        *result = (uint64_t)registers_result(&caller->now);
    else
        *result = registers_number(&caller->now);
    return caller->has_faults || caller->signal || drop_system_call(caller, error);
}

// The thread itself must not read it once it is gone.
static void drop_stack(struct caller *caller) {
    if (!caller->stack) return;
    if (caller->stub.place) {
        vector_registers_set(caller->tid, &caller->vectors);
        stub_set_vectors(&caller->stub, 0, caller->vectors.kind);
    }
    unmap(caller, caller->stack, caller->stack_bytes);
    stub_set_stack(&caller->stub, 0, 0);
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
    bool is_done = leave_stub(caller);
    if (caller->has_met_signal) kill(caller->remote->pid, caller->signal);
    return is_done || tell_end(error);
}
