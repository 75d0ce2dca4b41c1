// SPDX-License-Identifier: Apache-2.0
// A function without unwind information that keeps a frame pointer, called by a function of libc:
// from there outwards the stack can only be guessed at. tests/e2e/aarch64.py compiles it so that
// only the section of `blind` has no unwind information: it is assembled by hand.
#include <stdlib.h>

static void *volatile sink;

__attribute__((noinline, used)) static int take_block(const void *a, const void *b) {
    if (!sink) sink = malloc(505);
    return *(const int *)a - *(const int *)b;
}

// As compilers do it where registers are kept: the record lies below them.
#if defined(__aarch64__)
__asm__(".text\n"
        ".type blind, %function\n"
        "blind:\n"
        "    stp x29, x30, [sp, #-48]!\n"
        "    stp x19, x20, [sp, #16]\n"
        "    mov x29, sp\n"
        "    bl take_block\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #48\n"
        "    ret\n"
        ".size blind, .-blind\n");
#elif defined(__x86_64__)
__asm__(".text\n"
        ".type blind, @function\n"
        "blind:\n"
        "    pushq %rbp\n"
        "    movq %rsp, %rbp\n"
        "    call take_block\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size blind, .-blind\n");
#endif
int blind(const void *a, const void *b);

int main(void) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, sizeof numbers / sizeof *numbers, sizeof *numbers, blind);
    return numbers[0] != 1;
}
