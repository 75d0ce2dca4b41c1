// SPDX-License-Identifier: Apache-2.0
// Thread-locals of the library in a static program. Code asks for each by a descriptor (TLSDESC) of
// which the tool's loader chooses the function; that changes no register but the result's.
//
// A program that has not begun is told to keep room for them in each thread: the descriptor has the
// offset. In one that runs already no thread has room, and none can be made. There they lie in
// blocks that are found by the thread pointer. A thread that ends is not heard of, and the next one
// may have its thread pointer: the number by which libc knows its thread tells them apart, whose
// place the tool has found. In a forked child libc has changed that of the thread that forked.
//
// The function for a thread that is not known runs inside of any expression: it uses no vector
// registers, and makes its system calls itself.
#include "runtime/bare/locals.h"

#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "format/bare.h"
#include "runtime/bare/bare.h"
#include "runtime/process/state.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"

extern struct cairn_bare cairn_bare;
extern HIDDEN const uint8_t __ehdr_start[];

#define ANYWHERE __attribute__((target("general-regs-only")))

enum { BLOCKS = 1 << 16, BLOCK_TRIES = 64, PAGE_SHIFT = 12, LOCALS_BYTES = 40 };

struct block {
    uintptr_t pointer;       // (atomic) the thread's; 0: nobody's
    const int32_t *current;  // libc's number of the thread that has this pointer now
    int32_t tid;             // of the thread whose they are
    _Alignas(uint64_t) uint8_t locals[LOCALS_BYTES];
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct block) == 64 && offsetof(struct block, tid) == 16 &&
                   offsetof(struct block, locals) == 24,
               "as the code below has it");

// The blocks that the code below chooses from.
HIDDEN struct block *bare_blocks;  // NULL: not recorded

static struct block nobody, *prepared;
static const uint8_t *image;  // as a new thread has them
static size_t image_bytes;
static int32_t known_pid;
static bool is_confined;

__asm__(".pushsection .text.bare_locals, \"ax\", @progbits\n"
        ".globl cairn_bare_given, cairn_bare_found\n"
        ".type cairn_bare_given, @function\n"
        "cairn_bare_given:\n"
        "    .cfi_startproc\n"
        "    movq 8(%rax), %rax\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size cairn_bare_given, . - cairn_bare_given\n"
        ".type cairn_bare_found, @function\n"
        "cairn_bare_found:\n"
        "    .cfi_startproc\n"
        "    pushq %rcx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rdx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movq 8(%rax), %rcx\n"
        "    movq bare_blocks(%rip), %rax\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    movq %fs:0, %rdx\n"
        "    shrq $12, %rdx\n"
        "    movzwl %dx, %edx\n"
        "    shlq $6, %rdx\n"
        "    addq %rdx, %rax\n"
        "    movq %fs:0, %rdx\n"
        "    cmpq %rdx, (%rax)\n"
        "    jne 1f\n"
        "    movq 8(%rax), %rdx\n"
        "    movl (%rdx), %edx\n"
        "    cmpl %edx, 16(%rax)\n"
        "    jne 1f\n"
        "    leaq 24(%rax,%rcx), %rax\n"
        "2:  subq %fs:0, %rax\n"
        "    popq %rdx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    ret\n"
        "    .cfi_adjust_cfa_offset 16\n"
        "1:  pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r8\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r9\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r10\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r11\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rcx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rbp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset rbp, 0\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register rbp\n"
        "    andq $-16, %rsp\n"
        "    call bare_locals_find\n"
        "    movq %rbp, %rsp\n"
        "    .cfi_def_cfa_register rsp\n"
        "    popq %rbp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_restore rbp\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r11\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r10\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r9\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r8\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    addq %rcx, %rax\n"
        "    jmp 2b\n"
        "    .cfi_endproc\n"
        ".size cairn_bare_found, . - cairn_bare_found\n"
        ".popsection\n");

ANYWHERE static long call(long number, long a, long b, long c, long d) {
    register long fourth __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

ANYWHERE static void begin_locals(struct block *block) {
    for (size_t i = 0; i < LOCALS_BYTES; i++) block->locals[i] = i < image_bytes ? image[i] : 0;
}

ANYWHERE static struct block *block_at(uintptr_t pointer, unsigned try) {
    return &bare_blocks[((pointer >> PAGE_SHIFT) + try) % BLOCKS];
}

ANYWHERE static bool is_dead(int32_t tid) {
    return tid && !is_confined && call(SYS_tgkill, known_pid, tid, 0, 0) == -3;
}

// Takes one that nobody has, or whose thread has ended.
ANYWHERE static struct block *claim(uintptr_t pointer) {
    for (unsigned try = 0; try < BLOCK_TRIES; try++) {
        struct block *block = block_at(pointer, try);
        uintptr_t before = __atomic_load_n(&block->pointer, __ATOMIC_ACQUIRE);
        if ((!before || is_dead(block->tid)) &&
            __atomic_compare_exchange_n(&block->pointer, &before, pointer, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return block;
    }
    return NULL;
}

ANYWHERE static struct block *find(uintptr_t pointer) {
    for (unsigned try = 0; try < BLOCK_TRIES; try++) {
        struct block *block = block_at(pointer, try);
        uintptr_t there = __atomic_load_n(&block->pointer, __ATOMIC_ACQUIRE);
        if (there == pointer) return block;
        if (!there) return NULL;
    }
    return NULL;
}

// The thread that forked goes on as the only one of its child, under another number.
ANYWHERE static bool is_of_fork(void) {
    int32_t pid = is_confined ? known_pid : (int32_t)call(SYS_getpid, 0, 0, 0, 0);
    bool has_forked = pid != known_pid;
    known_pid = pid;
    return has_forked;
}

// A number of 0: libc has not begun to know the thread, or no longer does.
ANYWHERE static void change_owner(struct block *block) {
    int32_t tid = *block->current;
    if (!tid || tid == block->tid) return;
    if (!is_of_fork()) begin_locals(block);
    __atomic_store_n(&block->tid, tid, __ATOMIC_RELEASE);
}

// Switches cairn off where no block is left; all that follows is a loss.
ANYWHERE static struct block *find_or_claim(uintptr_t pointer) {
    struct block *block = find(pointer);
    if (!block) {
        is_of_fork();
        block = claim(pointer);
        if (!block) {
            if (process_move(PROCESS_RECORDING, PROCESS_INERT)) gate_count_loss(CAIRN_LOST_REST);
            process_become(PROCESS_INERT);
            return &nobody;
        }
        block->current = (const int32_t *)(pointer + cairn_bare.tid_offset);
        begin_locals(block);
        __atomic_store_n(&block->tid, *block->current, __ATOMIC_RELEASE);
    }
    change_owner(block);
    return block;
}

// A signal handler finds its thread's block as it was before, or made.
ANYWHERE HIDDEN __attribute__((used)) uint8_t *bare_locals_find(void) {
    uint64_t all = UINT64_MAX, before = 0;
    uintptr_t pointer;
    if (!bare_blocks) return nobody.locals;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    if (!is_confined) call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all);
    struct block *block = find_or_claim(pointer);
    if (!is_confined) call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
    return block->locals;
}

// Before the library has its own address space: a thread's may be in use until stop has returned.
bool bare_locals_prepare(void) {
    prepared = sys_reserve(BLOCKS * sizeof *prepared);
    bare_keep_mapping(prepared, BLOCKS * sizeof *prepared);
    return prepared;
}

void bare_locals_start(bool has_filter) {
    is_confined = has_filter;
    known_pid = sys_pid();
    __atomic_store_n(&bare_blocks, prepared, __ATOMIC_RELEASE);
}

void bare_locals_stop(void) {
    __atomic_store_n(&bare_blocks, NULL, __ATOMIC_RELEASE);
}

bool bare_locals_open(void) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)__ehdr_start;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(__ehdr_start + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_TLS && segments[i].p_memsz <= LOCALS_BYTES) {
            image = __ehdr_start + segments[i].p_vaddr;
            image_bytes = segments[i].p_filesz;
            begin_locals(&nobody);
            return true;
        }
    return false;
}
