// SPDX-License-Identifier: Apache-2.0
// Coroutines by ucontext on stacks from malloc: they allocate, hand over in turn, free each
// other's blocks, and one stack is freed and its memory used again.
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define COROUTINES 5
#define ROUNDS 200
#define STACK_BYTES 65536

static ucontext_t scheduler, contexts[COROUTINES];
static void *mailbox[COROUTINES];

__attribute__((noinline)) static void turn(int self, int round) {
    free(mailbox[(self + 1) % COROUTINES]);
    mailbox[(self + 1) % COROUTINES] = malloc((size_t)(self * 100 + round % 50 + 1));
    swapcontext(&contexts[self], &scheduler);
}

static void body(int self) {
    for (int round = 0; round < ROUNDS; round++) turn(self, round);
}

static void run_generation(void) {
    void *stacks[COROUTINES];
    for (int i = 0; i < COROUTINES; i++) {
        stacks[i] = malloc(STACK_BYTES);
        getcontext(&contexts[i]);
        contexts[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = STACK_BYTES};
        contexts[i].uc_link = &scheduler;
        makecontext(&contexts[i], (void (*)(void))body, 1, i);
    }
    for (int round = 0; round <= ROUNDS; round++) {
        for (int i = 0; i < COROUTINES; i++) swapcontext(&scheduler, &contexts[i]);
    }
    for (int i = 0; i < COROUTINES; i++) free(stacks[i]);
}

int main(void) {
    for (int generation = 0; generation < 3; generation++) run_generation();
    printf("done\n");
    return 0;
}
