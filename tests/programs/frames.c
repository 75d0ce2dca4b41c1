// SPDX-License-Identifier: Apache-2.0
// Frames that are hard to unwind: alloca and variable arrays, over-aligned locals (the stack is
// realigned, the frame's address is found through a saved register), many arguments on the stack,
// and functions called through a jump out (longjmp). Each leaks one block of its own size.
#include <alloca.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile sink;
static jmp_buf back;

__attribute__((noinline)) static void with_alloca(size_t bytes) {
    char *room = alloca(bytes);
    memset(room, 1, bytes);
    sink = malloc(101);
    __asm__ volatile("" ::"r"(room) : "memory");
}

__attribute__((noinline)) static void with_aligned_local(size_t bytes) {
    _Alignas(256) char local[512];
    char *room = alloca(bytes);
    memset(local, 2, sizeof local);
    sink = malloc(202);
    __asm__ volatile("" ::"r"(local), "r"(room) : "memory");
    with_alloca(bytes / 2 + 1);
}

__attribute__((noinline)) static int with_arguments(int a, int b, int c, int d, int e, int f, int g,
                                                    int h, int i, int j) {
    sink = malloc(303);
    __asm__ volatile("" ::: "memory");
    return a + b + c + d + e + f + g + h + i + j;
}

__attribute__((noinline)) static void jump_out(int value) {
    sink = malloc(404);
    longjmp(back, value);
}

static int compare(const void *a, const void *b) {
    sink = malloc(505);
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    with_alloca(1000);
    with_aligned_local(3000);
    int sum = with_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    volatile int jumps = 0;
    if (setjmp(back) < 5) jump_out(++jumps);
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    printf("%d %d %d%d%d\n", sum, jumps, numbers[0], numbers[1], numbers[2]);
    return 0;
}
