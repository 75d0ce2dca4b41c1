// SPDX-License-Identifier: Apache-2.0
// Wrapped functions by which a program changes the rules it runs under (exec.c has exec).
// Each only takes note and passes on; none changes what the program asked for.
//   seccomp     from then on the runtime makes no system call that a filter might punish; one that
//               only lets calls fail is left at that (seccomp.h)
//   RLIMIT_AS, RLIMIT_DATA   reserved address space is given back, since it counts (limits.h)
//   mlockall    through syscall, to locked.c; execve and execveat to exec.c
//   fork        of a signal handler that interrupted cairn: the child, which will finish the event,
//               must not do so in its parent's recording
//   clone       without CLONE_VM, where the kernel does not wipe the gate in forked children
//   _exit       a recording that this process writes itself is finished before its image goes
//   dlopen      with RTLD_DEEPBIND: calls from there would bypass us (deepbind.h)
//   dlmopen     into another namespace: calls from there are led to us afterwards (namespaces.h),
//   or
//               counted as bypassing us
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/inject/deepbind.h"
#include "runtime/inject/namespaces.h"
#include "runtime/inject/wrap.h"
#include "runtime/process/end.h"
#include "runtime/process/limits.h"
#include "runtime/process/real.h"
#include "runtime/process/start.h"
#include "runtime/record/event.h"
#include "runtime/record/sampling.h"
#include "runtime/sys/seccomp.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/veil.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"
#include "runtime/thread/stack_memory.h"

#define EXPORT __attribute__((visibility("default"), used))

// Calls before the constructor ran.
static void be_ready(void) {
    if (unlikely(!real_is_resolved())) real_resolve();
}

// The thread is about to do without system calls.
static COLD void take_stack_memory(uintptr_t here) {
    struct thread *thread = gate_enter(here);
    if (!thread) return;
    while (stack_memory_take_more(thread)) {
    }
    gate_leave(thread);
}

// Declared here with plain parameters: libc's are variadic, which these ABIs pass alike.
int prctl_hook(int option, unsigned long a, unsigned long b, unsigned long c,
               unsigned long d) __asm__("prctl");

EXPORT int prctl_hook(int option, unsigned long a, unsigned long b, unsigned long c,
                      unsigned long d) {
    const unsigned long strict = 1, set_filter = 2;
    bool is_filter = option == PR_SET_SECCOMP && a == set_filter && b;
    be_ready();
    if (option == PR_SET_SECCOMP && a == strict)
        take_stack_memory((uintptr_t)__builtin_frame_address(0));
    if (is_filter) veil_lift_shared();  // a harmless one too may have that fail later
    if (!is_filter || !seccomp_note((const void *)b)) sys_confine_by_prctl(option, a, b);
    return real.prctl(option, a, b, c, d);
}

// syscall() and clone() must not get a frame of ours: through them programs clone onto new stacks.
// All registers and the stack are as the program left them when the real one is entered.
// Calls of seccomp with other flags or no filter are questions of what the kernel knows.
static void note_seccomp(long operation, long flags, const void *filter) {
    const long set_strict = 0, set_filter = 1;
    if (operation == set_strict && !flags && !filter) sys_confine(SYS_STRICT);
    if (operation != set_filter || !filter) return;
    veil_lift_shared();
    if (!seccomp_note(filter)) sys_confine(SYS_FILTERED);
}

// A child with memory of its own; clone3 is younger than what wipes that of the gate.
static void note_clone(long flags) {
    if (!(flags & CLONE_VM)) gate_expect_fork();
}

// Both words of a limit have 64 bits here, whatever the function is called.
static void note_limit(int resource, const void *words, uintptr_t here) {
    const struct rlimit *limit = words;
    be_ready();
    if ((resource != RLIMIT_AS && resource != RLIMIT_DATA) || !limit) return;
    if (limit->rlim_cur > limit->rlim_max) return;  // the kernel refuses it
    limits_note(resource, limit->rlim_cur, here);
}

static void note_limit_of(int pid, int resource, const void *limit, uintptr_t here) {
    if (pid == 0 || pid == sys_pid()) note_limit(resource, limit, here);
}

HIDDEN __attribute__((used)) void syscall_note(long number, long a, long b, const void *c) {
    if (number == SYS_seccomp) note_seccomp(a, b, c);
    if (number == SYS_clone) note_clone(a);
    if (number == SYS_setrlimit) note_limit((int)a, (const void *)b, (uintptr_t)EVENT_HERE());
    if (number == SYS_prlimit64) note_limit_of((int)a, (int)b, c, (uintptr_t)EVENT_HERE());
#ifdef SYS_fork
    if (number == SYS_fork) gate_expect_fork();
#endif
}

HIDDEN __attribute__((used)) void clone_note(const void *start, const void *stack, long flags) {
    (void)start, (void)stack;
    be_ready();
    note_clone(flags);
}

HIDDEN __attribute__((used)) void *const *const syscall_real = (void *const *)&real.syscall;
HIDDEN __attribute__((used)) void *const *const clone_real = (void *const *)&real.clone;

#if defined(__x86_64__)
// Tells NOTE of the arguments, which all arrive in registers or are left where they are, and jumps.
#define NOTE_AND_JUMP(note, real)                                                                  \
    "    pushq %rdi\n    .cfi_adjust_cfa_offset 8\n"                                               \
    "    pushq %rsi\n    .cfi_adjust_cfa_offset 8\n"                                               \
    "    pushq %rdx\n    .cfi_adjust_cfa_offset 8\n"                                               \
    "    pushq %rcx\n    .cfi_adjust_cfa_offset 8\n"                                               \
    "    pushq %r8\n    .cfi_adjust_cfa_offset 8\n"                                                \
    "    pushq %r9\n    .cfi_adjust_cfa_offset 8\n"                                                \
    "    pushq %rax\n    .cfi_adjust_cfa_offset 8\n"                                               \
    "    call " note "\n"                                                                          \
    "    popq %rax\n    .cfi_adjust_cfa_offset -8\n"                                               \
    "    popq %r9\n    .cfi_adjust_cfa_offset -8\n"                                                \
    "    popq %r8\n    .cfi_adjust_cfa_offset -8\n"                                                \
    "    popq %rcx\n    .cfi_adjust_cfa_offset -8\n"                                               \
    "    popq %rdx\n    .cfi_adjust_cfa_offset -8\n"                                               \
    "    popq %rsi\n    .cfi_adjust_cfa_offset -8\n"                                               \
    "    popq %rdi\n    .cfi_adjust_cfa_offset -8\n"                                               \
    "    movq " real "(%rip), %r11\n"                                                              \
    "    jmpq *(%r11)\n"
__asm__(".text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    cmpq $317, %rdi\n"  // SYS_seccomp
        "    je 1f\n"
        "    cmpq $56, %rdi\n"  // SYS_clone
        "    je 1f\n"
        "    cmpq $57, %rdi\n"  // SYS_fork
        "    je 1f\n"
        "    cmpq $160, %rdi\n"  // SYS_setrlimit
        "    je 1f\n"
        "    cmpq $302, %rdi\n"  // SYS_prlimit64
        "    je 1f\n"
        "    cmpq $151, %rdi\n"  // SYS_mlockall
        "    je mlockall_by_number\n"
        "    cmpq $152, %rdi\n"  // SYS_munlockall
        "    je munlockall_by_number\n"
        "    cmpq $59, %rdi\n"  // SYS_execve
        "    je execve_by_number\n"
        "    cmpq $322, %rdi\n"  // SYS_execveat
        "    je execveat_by_number\n"
        "    movq syscall_real(%rip), %rax\n"
        "    jmpq *(%rax)\n"
        "1:\n" NOTE_AND_JUMP("syscall_note",
                             "syscall_real") "    .cfi_endproc\n"
                                             ".size syscall, .-syscall\n"
                                             ".globl clone\n"
                                             ".type clone, @function\n"
                                             "clone:\n"
                                             "    .cfi_startproc\n" NOTE_AND_JUMP(
                                                 "clone_note",
                                                 "clone_real") "    .cfi_endproc\n"
                                                               ".size clone, .-clone\n");
#elif defined(__aarch64__)
#define NOTE_AND_JUMP(note, real)                                                                  \
    "    stp x29, x30, [sp, #-80]!\n"                                                              \
    "    .cfi_def_cfa_offset 80\n"                                                                 \
    "    .cfi_offset x29, -80\n"                                                                   \
    "    .cfi_offset x30, -72\n"                                                                   \
    "    mov x29, sp\n"                                                                            \
    "    stp x0, x1, [sp, #16]\n"                                                                  \
    "    stp x2, x3, [sp, #32]\n"                                                                  \
    "    stp x4, x5, [sp, #48]\n"                                                                  \
    "    stp x6, x7, [sp, #64]\n"                                                                  \
    "    bl " note "\n"                                                                            \
    "    ldp x0, x1, [sp, #16]\n"                                                                  \
    "    ldp x2, x3, [sp, #32]\n"                                                                  \
    "    ldp x4, x5, [sp, #48]\n"                                                                  \
    "    ldp x6, x7, [sp, #64]\n"                                                                  \
    "    ldp x29, x30, [sp], #80\n"                                                                \
    "    .cfi_def_cfa_offset 0\n"                                                                  \
    "    .cfi_restore x29\n"                                                                       \
    "    .cfi_restore x30\n" JUMP(real)
#define JUMP(real)                                                                                 \
    "    adrp x16, " real "\n"                                                                     \
    "    ldr x16, [x16, #:lo12:" real "]\n"                                                        \
    "    ldr x16, [x16]\n"                                                                         \
    "    br x16\n"
__asm__(".text\n"
        ".globl syscall\n"
        ".type syscall, %function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    cmp x0, #277\n"  // SYS_seccomp
        "    b.eq 1f\n"
        "    cmp x0, #220\n"  // SYS_clone
        "    b.eq 1f\n"
        "    cmp x0, #164\n"  // SYS_setrlimit
        "    b.eq 1f\n"
        "    cmp x0, #230\n"  // SYS_mlockall
        "    b.eq mlockall_by_number\n"
        "    cmp x0, #231\n"  // SYS_munlockall
        "    b.eq munlockall_by_number\n"
        "    cmp x0, #221\n"  // SYS_execve
        "    b.eq execve_by_number\n"
        "    cmp x0, #281\n"  // SYS_execveat
        "    b.eq execveat_by_number\n"
        "    cmp x0, #261\n"  // SYS_prlimit64
        "    b.eq 1f\n" JUMP("syscall_real") "1:\n" NOTE_AND_JUMP(
            "syscall_note", "syscall_real") "    .cfi_endproc\n"
                                            ".size syscall, .-syscall\n"
                                            ".globl clone\n"
                                            ".type clone, %function\n"
                                            "clone:\n"
                                            "    .cfi_startproc\n" NOTE_AND_JUMP(
                                                "clone_note",
                                                "clone_real") "    .cfi_endproc\n"
                                                              ".size clone, .-clone\n");
#endif

int setrlimit_hook(int resource, const void *limit) __asm__("setrlimit");
int setrlimit64_hook(int resource, const void *limit) __asm__("setrlimit64");
int prlimit_hook(int pid, int resource, const void *limit, void *old) __asm__("prlimit");
int prlimit64_hook(int pid, int resource, const void *limit, void *old) __asm__("prlimit64");

EXPORT int setrlimit_hook(int resource, const void *limit) {
    note_limit(resource, limit, (uintptr_t)EVENT_HERE());
    return real.setrlimit(resource, limit);
}

EXPORT int setrlimit64_hook(int resource, const void *limit) {
    note_limit(resource, limit, (uintptr_t)EVENT_HERE());
    return real.setrlimit64(resource, limit);
}

EXPORT int prlimit_hook(int pid, int resource, const void *limit, void *old) {
    note_limit_of(pid, resource, limit, (uintptr_t)EVENT_HERE());
    return real.prlimit(pid, resource, limit, old);
}

EXPORT int prlimit64_hook(int pid, int resource, const void *limit, void *old) {
    note_limit_of(pid, resource, limit, (uintptr_t)EVENT_HERE());
    return real.prlimit64(pid, resource, limit, old);
}

int fork(void);
int _Fork(void);

static COLD void child_begins(bool is_inside) {
    slots_wipe();
    event_begin_child();
    if (is_inside) process_detach();
}

EXPORT int fork(void) {
    be_ready();
    bool is_inside = gate_is_busy();
    sampling_note_fork();
    int child = real.fork();
    if (child == 0) child_begins(is_inside);
    return child;
}

EXPORT int _Fork(void) {
    be_ready();
    bool is_inside = gate_is_busy();
    sampling_note_fork();
    int child = real._Fork();
    if (child == 0) child_begins(is_inside);
    return child;
}

// Tail calls: dlopen looks at its caller's address to find $ORIGIN and the caller's RUNPATH.
EXPORT void *dlopen(const char *path, int flags) {
    be_ready();
    namespaces_look_if_expected();
    wrap_look();
    deepbind_look_if_expected();
    if (flags & RTLD_DEEPBIND) deepbind_begin(path);
    return real.dlopen(path, flags);
}

static NOINLINE void *open_elsewhere(Lmid_t namespace, const char *path, int flags) {
    void *handle = real.dlmopen(namespace, path, flags);
    if (handle && !namespaces_look()) gate_count_loss(CAIRN_LOST_DEEPBIND);
    EVENT_KEEP_FRAME();
    return handle;
}

EXPORT void *dlmopen(Lmid_t namespace, const char *path, int flags) {
    be_ready();
    deepbind_look_if_expected();
    if (namespace == LM_ID_BASE && (flags & RTLD_DEEPBIND)) deepbind_begin(path);
    if (namespace == LM_ID_BASE) return real.dlmopen(namespace, path, flags);
    if (namespaces_may_call(path, (uintptr_t)__builtin_return_address(0)))
        return open_elsewhere(namespace, path, flags);
    namespaces_expect();
    gate_count_loss(CAIRN_LOST_DEEPBIND);
    return real.dlmopen(namespace, path, flags);
}

EXPORT void _exit(int status) {
    be_ready();
    deepbind_look_if_expected();
    process_exit();
    real._exit(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status) {
    be_ready();
    deepbind_look_if_expected();
    process_exit();
    real._Exit(status);
    __builtin_unreachable();
}
