// SPDX-License-Identifier: Apache-2.0
// Generated code without unwind information calls malloc and free, N pairs, with a frame pointer
// that leads off the stack: a page that cannot be read lies above the stack, then 8 MiB that can be
// read, and the pointer is behind the one or the other, as by chance in a just-in-time compiler's
// code. `generated N gone`: it leads to memory right above the stack, which half way is unmapped.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 4096, STACK = 64 * PAGE, HOLE = 8 * PAGE, BEYOND = 8 << 20 };

// push rbp; mov rbp, rdi; call rsi; pop rbp; ret
static const uint8_t instructions[] = {0x55, 0x48, 0x89, 0xfd, 0xff, 0xd6, 0x5d, 0xc3};

static ucontext_t outside, inside;
static void (*generated)(void *frame_pointer, void (*function)(void));
static uint8_t *memory;
static long pairs;

static void pair(void) {
    void *volatile block = malloc(100);
    free(block);
}

static void body(void) {
    void *const near = memory + STACK + HOLE + 4 * PAGE;
    void *const far = memory + STACK + HOLE + BEYOND / 2;
    for (long i = 0; i < pairs; i++) generated(i % 2 ? near : far, pair);
}

static void body_gone(void) {
    void *const above = memory + STACK + 2 * PAGE;
    for (long i = 0; i < pairs; i++) {
        if (i == pairs / 2) munmap(memory + STACK, HOLE);
        generated(above, pair);
    }
}

int main(int count, char **arguments) {
    int everything = PROT_READ | PROT_WRITE;
    pairs = count > 1 ? atol(arguments[1]) : 1000;
    memory = mmap(NULL, STACK + HOLE + BEYOND, everything, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *code = mmap(NULL, PAGE, everything, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || code == MAP_FAILED) return 1;
    memcpy(code, instructions, sizeof instructions);
    if (mprotect(code, PAGE, PROT_READ | PROT_EXEC) != 0) return 1;
    if (mprotect(memory + STACK + HOLE, PAGE, PROT_NONE) != 0) return 1;
    memcpy(&generated, &code, sizeof code);
    getcontext(&inside);
    inside.uc_stack = (stack_t){.ss_sp = memory, .ss_size = STACK};
    inside.uc_link = &outside;
    makecontext(&inside, count > 2 && !strcmp(arguments[2], "gone") ? body_gone : body, 0);
    swapcontext(&outside, &inside);
    printf("%ld pairs\n", pairs);
    return 0;
}
