// SPDX-License-Identifier: Apache-2.0
// A stopped thread's registers: the one place for a process' processor. Another processor needs
// these functions again, the kinds of relocations in tool/attach/got_patch.c, and a code.h of its
// own. Those of aarch64 were run on emulated machines only (make check-aarch64).
#ifndef TOOL_PROC_REGISTERS_H
#define TOOL_PROC_REGISTERS_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

// Floating point and vector registers, as the kernel keeps them.
struct vector_registers {
    uint8_t bytes[16384];
    size_t used;
    int kind;
};

enum { REGISTERS_ARGUMENTS = 6 };
// As many words as the kernel gives, in its order, which is that of core dumps.
enum { REGISTERS_KERNEL_COUNT = sizeof(struct user_regs_struct) / sizeof(uint64_t) };

// One set of registers, of exactly `size` bytes.
static inline bool register_set_get(pid_t tid, int kind, void *bytes, size_t size) {
    struct iovec part = {bytes, size};
    return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)kind, &part) == 0 &&
           part.iov_len == size;
}

static inline bool register_set_set(pid_t tid, int kind, const void *bytes, size_t size) {
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)kind, &part) == 0;
}

static inline bool vector_registers_set(pid_t tid, const struct vector_registers *vectors) {
    return register_set_set(tid, vectors->kind, vectors->bytes, vectors->used);
}

#if defined(__x86_64__)

struct registers {
    struct user_regs_struct words;
};

enum { REGISTERS_DWARF_COUNT = 17 };
#define REGISTERS_MACHINE EM_X86_64
enum { REGISTERS_ARE_TRIED = true };
// The word that a thread pointer leads to is that pointer again.
enum { REGISTERS_THREAD_IS_MARKED = true };

// Bytes below the stack pointer that belong to the interrupted function.
enum { REGISTERS_RED_ZONE_BYTES = 128 };

static const int registers_vector_kinds[] = {NT_X86_XSTATE, NT_PRFPREG};

static inline bool registers_get(pid_t tid, struct registers *registers) {
    return register_set_get(tid, NT_PRSTATUS, &registers->words, sizeof registers->words);
}
static inline bool registers_set(pid_t tid, const struct registers *registers) {
    return register_set_set(tid, NT_PRSTATUS, &registers->words, sizeof registers->words);
}

static inline uint64_t registers_pc(const struct registers *registers) {
    return registers->words.rip;
}
static inline uint64_t registers_stack(const struct registers *registers) {
    return registers->words.rsp;
}
static inline uint64_t registers_thread_pointer(const struct registers *registers) {
    return registers->words.fs_base;
}
static inline bool registers_are_in_system_call(const struct registers *registers) {
    return (int64_t)registers->words.orig_rax >= 0;
}
static inline int64_t registers_result(const struct registers *registers) {
    return (int64_t)registers->words.rax;
}
// At the entry of a system call: what stood in the register of results before it.
static inline uint64_t registers_number(const struct registers *registers) {
    return registers->words.orig_rax;
}
// The number of the system call that it is in.
static inline int64_t registers_system_call(const struct registers *registers) {
    return (int64_t)registers->words.orig_rax;
}
// A system call that was interrupted is not to be started again, one that is entered is left out.
static inline void registers_drop_system_call(struct registers *registers) {
    registers->words.orig_rax = UINT64_MAX;
}

static inline void registers_pass(struct registers *registers,
                                  const uint64_t arguments[REGISTERS_ARGUMENTS], bool is_call) {
    registers->words.rdi = arguments[0];
    registers->words.rsi = arguments[1];
    registers->words.rdx = arguments[2];
    if (is_call)
        registers->words.rcx = arguments[3];
    else
        registers->words.r10 = arguments[3];
    registers->words.r8 = arguments[4];
    registers->words.r9 = arguments[5];
}

// The instruction at `at` makes system calls.
static inline void registers_for_system_call(struct registers *registers, uint64_t at,
                                             uint64_t number,
                                             const uint64_t arguments[REGISTERS_ARGUMENTS]) {
    registers->words.rip = at;
    registers->words.rax = number;
    registers_drop_system_call(registers);
    registers_pass(registers, arguments, false);
}

// `stack` is what the stack pointer is after the call, a multiple of 16. The word below it holds
// `return_to`.
static inline void registers_for_call(struct registers *registers, uint64_t function,
                                      uint64_t stack, uint64_t return_to,
                                      const uint64_t arguments[REGISTERS_ARGUMENTS]) {
    const uint64_t direction_flag = 1u << 10;
    (void)return_to;
    registers->words.rip = function;
    registers->words.rsp = stack - sizeof(uint64_t);
    registers->words.rbp = 0;
    registers->words.rax = 0;
    registers->words.eflags &= ~direction_flag;
    registers_drop_system_call(registers);
    registers_pass(registers, arguments, true);
}

static const uint8_t registers_system_call_code[2] = {0x0f, 0x05};

// In the order of DWARF's numbers.
static inline void registers_dwarf(const struct registers *registers,
                                   uint64_t words[REGISTERS_DWARF_COUNT]) {
    const struct user_regs_struct *from = &registers->words;
    const uint64_t all[REGISTERS_DWARF_COUNT] = {
        from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
        from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
        from->r12, from->r13, from->r14, from->r15, from->rip};
    memcpy(words, all, sizeof all);
}

#elif defined(__aarch64__)

// From core dumps and ptrace: x0 to x30, sp, pc, pstate.
struct registers {
    struct user_regs_struct words;
    uint64_t thread_pointer;
    int32_t system_call;        // its number; -1: none
    bool is_system_call_ended;  // registers_set says so to the kernel
};

enum { REGISTERS_DWARF_COUNT = 32, REGISTERS_LINK = 30, REGISTERS_FRAME = 29 };
enum { REGISTERS_NUMBER = 8 };  // of a system call
#define REGISTERS_MACHINE EM_AARCH64
// On a real processor; tests on an emulated machine do without (make check-aarch64).
#ifdef CAIRN_EMULATED
enum { REGISTERS_ARE_TRIED = true };
#else
enum { REGISTERS_ARE_TRIED = false };
#endif

enum { REGISTERS_THREAD_IS_MARKED = false };
enum { REGISTERS_RED_ZONE_BYTES = 0 };

static const int registers_vector_kinds[] = {NT_ARM_SVE, NT_PRFPREG};

static inline bool registers_get(pid_t tid, struct registers *registers) {
    registers->is_system_call_ended = false;
    return register_set_get(tid, NT_PRSTATUS, &registers->words, sizeof registers->words) &&
           register_set_get(tid, NT_ARM_TLS, &registers->thread_pointer, sizeof(uint64_t)) &&
           register_set_get(tid, NT_ARM_SYSTEM_CALL, &registers->system_call, sizeof(int32_t));
}
static inline bool registers_set(pid_t tid, const struct registers *registers) {
    const int32_t none = -1;
    return register_set_set(tid, NT_PRSTATUS, &registers->words, sizeof registers->words) &&
           (!registers->is_system_call_ended ||
            register_set_set(tid, NT_ARM_SYSTEM_CALL, &none, sizeof none));
}

static inline uint64_t registers_pc(const struct registers *registers) {
    return registers->words.pc;
}
static inline uint64_t registers_stack(const struct registers *registers) {
    return registers->words.sp;
}
static inline uint64_t registers_thread_pointer(const struct registers *registers) {
    return registers->thread_pointer;
}
// The kernel has forgotten it where a signal or a request to stop interrupted it.
static inline bool registers_are_in_system_call(const struct registers *registers) {
    return registers->system_call >= 0;
}
static inline int64_t registers_result(const struct registers *registers) {
    return (int64_t)registers->words.regs[0];
}
// At the entry of a system call: what stood in the register of results before it.
static inline uint64_t registers_number(const struct registers *registers) {
    return registers->words.regs[0];
}
// The number of the system call that it is in.
static inline int64_t registers_system_call(const struct registers *registers) {
    return registers->system_call;
}
static inline void registers_drop_system_call(struct registers *registers) {
    registers->is_system_call_ended = true;
}

// The instruction at `at` makes system calls.
static inline void registers_for_system_call(struct registers *registers, uint64_t at,
                                             uint64_t number,
                                             const uint64_t arguments[REGISTERS_ARGUMENTS]) {
    registers->words.pc = at;
    registers->words.regs[REGISTERS_NUMBER] = number;
    registers_drop_system_call(registers);
    memcpy(registers->words.regs, arguments, REGISTERS_ARGUMENTS * sizeof *arguments);
}

// `stack` is what the stack pointer is before and after the call, a multiple of 16.
static inline void registers_for_call(struct registers *registers, uint64_t function,
                                      uint64_t stack, uint64_t return_to,
                                      const uint64_t arguments[REGISTERS_ARGUMENTS]) {
    registers->words.pc = function;
    registers->words.sp = stack;
    registers->words.regs[REGISTERS_FRAME] = 0;
    registers->words.regs[REGISTERS_LINK] = return_to;
    registers_drop_system_call(registers);
    memcpy(registers->words.regs, arguments, REGISTERS_ARGUMENTS * sizeof *arguments);
}

static const uint8_t registers_system_call_code[4] = {0x01, 0x00, 0x00, 0xd4};

// In the order of DWARF's numbers.
static inline void registers_dwarf(const struct registers *registers,
                                   uint64_t words[REGISTERS_DWARF_COUNT]) {
    memcpy(words, registers->words.regs, sizeof registers->words.regs);
    words[REGISTERS_DWARF_COUNT - 1] = registers->words.sp;
}

#endif

static inline bool vector_registers_get(pid_t tid, struct vector_registers *vectors) {
    for (size_t i = 0; i < sizeof registers_vector_kinds / sizeof *registers_vector_kinds; i++) {
        struct iovec part = {vectors->bytes, sizeof vectors->bytes};
        vectors->kind = registers_vector_kinds[i];
        if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)vectors->kind, &part) != 0) continue;
        vectors->used = part.iov_len;
        return part.iov_len < sizeof vectors->bytes;
    }
    return false;
}

#endif
