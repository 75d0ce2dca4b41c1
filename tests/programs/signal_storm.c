// SPDX-License-Identifier: Apache-2.0
// Allocates all the time while a timer's signals come, one soon after the other; each
// handler allocates and frees as well, on an alternate stack. It must run on an allocator that
// allows this (tests/tools/bump_preload.c). Prints how many calls it made: those of the program and
// of handlers.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/programs/interruptions.h"

#define ALLOCATIONS 300000
#define TIMER_US 100
#define INTERRUPTIONS_MAX 100000
#define HANDLER_CALLS_MIN 300
#define STACK_BYTES 65536

static volatile long handler_calls;
static void *volatile sink;

static void on_timer(int signal) {
    (void)signal;
    for (size_t i = 1; i <= 3; i++) {
        sink = malloc(1000 * i);
        handler_calls++;
        free(sink);
    }
    interrupt_again();
}

__attribute__((noinline)) static void work(size_t depth) {
    if (depth) {
        work(depth - 1);
        __asm__ volatile("" ::: "memory");
        return;
    }
    void *block = malloc(64);
    free(block);
}

int main(void) {
    static char alternate_stack[STACK_BYTES];
    stack_t alternate = {.ss_sp = alternate_stack, .ss_size = STACK_BYTES};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    long made = 0;
    interruptions_begin(TIMER_US, INTERRUPTIONS_MAX);
    for (; made < ALLOCATIONS || handler_calls < HANDLER_CALLS_MIN; made++)
        work((size_t)(made % 40));
    interruptions_end();
    printf("%ld %ld\n", made, handler_calls);
    return 0;
}
