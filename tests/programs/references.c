// SPDX-License-Identifier: Apache-2.0
// Holds blocks that one place each refers to: a register and the stack of a thread, thread-local
// data, memory of its own that can be written, only read, is shared, is kept out of core dumps, and
// the inside of a large block. Says in a line where they are, and waits for the end of its input.
// With an argument it fills so many MiB of its own beside.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_BYTES 120
#define LARGE_BYTES (1u << 20)
#define PAGE 4096u

// Hidden: no word here is an address.
static volatile uintptr_t of_register, of_stack, of_thread_local, of_mapped, of_constant, of_shared;
static volatile uintptr_t of_large, of_undumped;
static _Thread_local void *volatile thread_word;
static pthread_barrier_t ready;
static void **volatile large;

static uintptr_t hide(void *block) {
    return ~(uintptr_t)block;
}

// Waits for ever with the block's address in a register that the call keeps, and nowhere else.
static __attribute__((noinline)) void wait_with(uintptr_t hidden) {
    pthread_barrier_wait(&ready);
#if defined(__aarch64__)
    __asm__ volatile("mvn x19, %0\n\t"
                     "1: mov x8, #73\n\t"  // ppoll, of nothing
                     "mov x0, #0\n\tmov x1, #0\n\tmov x2, #0\n\tmov x3, #0\n\t"
                     "svc #0\n\t"
                     "b 1b"
                     :
                     : "r"(hidden)
                     : "x0", "x1", "x2", "x3", "x8", "x19", "memory");
#else
    __asm__ volatile("mov %0, %%r12\n\t"
                     "not %%r12\n\t"
                     "1: mov $34, %%eax\n\t"  // pause
                     "syscall\n\t"
                     "jmp 1b"
                     :
                     : "r"(hidden)
                     : "rax", "rcx", "r11", "r12", "memory");
#endif
}

static void *work(void *unused) {
    void *volatile on_stack = malloc(BLOCK_BYTES);
    (void)unused;
    of_stack = hide(on_stack);
    thread_word = malloc(BLOCK_BYTES);
    of_thread_local = hide(thread_word);
    of_register = hide(malloc(BLOCK_BYTES));
    wait_with(of_register);
    return on_stack;
}

static void **map(size_t bytes, int flags) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    return memory;
}

// A block that a word in the midst of that memory refers to.
static uintptr_t hold_in(void **memory, size_t bytes) {
    memory[bytes / sizeof *memory / 2] = malloc(BLOCK_BYTES);
    return hide(memory[bytes / sizeof *memory / 2]);
}

static __attribute__((noinline)) void hold(size_t more) {
    void **constant = map(PAGE, MAP_PRIVATE), **undumped = map(PAGE, MAP_PRIVATE);
    of_mapped = hold_in(map(PAGE, MAP_PRIVATE), PAGE);
    of_shared = hold_in(map(PAGE, MAP_SHARED), PAGE);
    of_constant = hold_in(constant, PAGE);
    of_undumped = hold_in(undumped, PAGE);
    mprotect(constant, PAGE, PROT_READ);
    madvise(undumped, PAGE, MADV_DONTDUMP);
    large = calloc(1, LARGE_BYTES);
    of_large = hold_in(large, LARGE_BYTES);
    if (more) memset(map(more, MAP_PRIVATE), 1, more);
}

static __attribute__((noinline)) int say(void) {
    char line[512];
    int length = snprintf(line, sizeof line,
                          "register=%lx stack=%lx thread_local=%lx mapped=%lx read_only=%lx "
                          "shared=%lx large=%lx hidden=%lx\n",
                          ~of_register, ~of_stack, ~of_thread_local, ~of_mapped, ~of_constant,
                          ~of_shared, ~of_large, ~of_undumped);
    return write(STDOUT_FILENO, line, (size_t)length) == length;
}

// What the functions before left below the stack pointer.
static __attribute__((noinline)) void scrub(void) {
    volatile char bytes[16384];
    memset((char *)bytes, 0, sizeof bytes);
}

int main(int argc, char **argv) {
    pthread_t thread;
    pthread_barrier_init(&ready, NULL, 2);
    if (pthread_create(&thread, NULL, work, NULL)) return 1;
    pthread_barrier_wait(&ready);
    hold(argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0);
    if (!say()) return 1;
    scrub();
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
