// SPDX-License-Identifier: Apache-2.0
// A thread whose stack overflows twice, in a recursion that allocates, and that recovers by a jump
// out of the handler on a stack of its own, wherever it was. Its frames are of two sizes, so that
// the second recursion lies across what the first one left.
//   overflowed BYTES BYTES   how much larger frames are than they must be
// Afterwards it makes 1,000 blocks of 100 bytes, which stay.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { STACK_BYTES = 48 << 10, AFTER_BLOCKS = 1000 };

static sigjmp_buf back;
static char signal_stack[1 << 16];
static void *volatile kept[AFTER_BLOCKS];

static void on_overflow(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    siglongjmp(back, 1);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
__attribute__((noinline)) static long deeper(long depth, int more) {
    volatile char bytes[64 + more];
    bytes[0] = depth;
    void *volatile block = malloc(40);
    free(block);
    return deeper(depth + 1, more) + bytes[0];
}

static void *recover(void *argument) {
    char **sizes = argument;
    const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    const struct sigaction action = {.sa_sigaction = on_overflow,
                                     .sa_flags = SA_ONSTACK | SA_SIGINFO | SA_NODEFER};
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int i = 0; i < 2; i++)
        if (!sigsetjmp(back, 1)) deeper(0, atoi(sizes[i]));
    for (int i = 0; i < AFTER_BLOCKS; i++) kept[i] = malloc(100);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (argc < 3) return 2;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread, &attributes, recover, argv + 1) != 0) return 1;
    pthread_join(thread, NULL);
    puts("recovered");
    return 0;
}
