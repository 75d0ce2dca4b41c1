// SPDX-License-Identifier: Apache-2.0
// A stopped thread's registers: the one place for a process' processor. Another processor needs
// these functions again, and the kinds of relocations in tool/attach/got_patch.c.
#ifndef TOOL_PROC_REGISTERS_H
#define TOOL_PROC_REGISTERS_H

#if !defined(__x86_64__)
#error "cairn attach knows x86-64"
#endif

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

struct registers {
    struct user_regs_struct words;
};

// Floating point and vector registers, as the kernel keeps them.
struct vector_registers {
    uint8_t bytes[16384];
    size_t used;
    int kind;
};

enum { REGISTERS_DWARF_COUNT = 17, REGISTERS_ARGUMENTS = 6 };
// As many words as the kernel gives, in its order, which is that of core dumps.
enum { REGISTERS_KERNEL_COUNT = sizeof(struct registers) / sizeof(uint64_t) };
#define REGISTERS_MACHINE EM_X86_64

// Bytes below the stack pointer that belong to the interrupted function.
enum { REGISTERS_RED_ZONE_BYTES = 128 };

static inline bool registers_get(pid_t tid, struct registers *registers) {
    struct iovec part = {&registers->words, sizeof registers->words};
    return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &part) == 0 &&
           part.iov_len == sizeof registers->words;
}

static inline bool registers_set(pid_t tid, const struct registers *registers) {
    struct registers copy = *registers;
    struct iovec part = {&copy.words, sizeof copy.words};
    return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &part) == 0;
}

static inline bool vector_registers_get(pid_t tid, struct vector_registers *vectors) {
    static const int kinds[] = {NT_X86_XSTATE, NT_PRFPREG};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct iovec part = {vectors->bytes, sizeof vectors->bytes};
        if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)kinds[i], &part) != 0) continue;
        vectors->used = part.iov_len;
        vectors->kind = kinds[i];
        return part.iov_len < sizeof vectors->bytes;
    }
    return false;
}

static inline bool vector_registers_set(pid_t tid, const struct vector_registers *vectors) {
    struct iovec part = {(void *)vectors->bytes, vectors->used};
    return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)vectors->kind, &part) == 0;
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

// `stack` is where a word with the return address lies: 8 below a multiple of 16.
static inline void registers_for_call(struct registers *registers, uint64_t function,
                                      uint64_t stack,
                                      const uint64_t arguments[REGISTERS_ARGUMENTS]) {
    const uint64_t direction_flag = 1u << 10;
    registers->words.rip = function;
    registers->words.rsp = stack;
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

#endif
