// SPDX-License-Identifier: Apache-2.0
// Allocates a block at each level of a recursion: levels DEPTH ROUNDS [THREAD_STACK_GIB]. With a
// third argument the recursion runs in a thread whose stack is one mapping of so many GiB.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int depth, rounds;

// Two functions that call each other, so that stacks of neighbouring levels differ in each frame.
__attribute__((noinline)) static int odd(int level);

__attribute__((noinline)) static int even(int level) {
    char *volatile block = malloc(16);
    int levels = level ? odd(level - 1) + 1 : 0;
    free(block);
    return levels;
}

static int odd(int level) {
    char *volatile block = malloc(24);
    int levels = level ? even(level - 1) + 1 : 0;
    free(block);
    return levels;
}

static void *run(void *unused) {
    long sum = 0;
    (void)unused;
    for (int i = 0; i < rounds; i++) sum += even(depth);
    printf("%ld levels\n", sum);
    return NULL;
}

int main(int count, char **words) {
    pthread_attr_t attributes;
    pthread_t thread;
    depth = atoi(words[1]);
    rounds = atoi(words[2]);
    if (count < 4) return run(NULL) != NULL;
    size_t bytes = (size_t)atoi(words[3]) << 30;
    void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || pthread_attr_init(&attributes) ||
        pthread_attr_setstack(&attributes, stack, bytes) ||
        pthread_create(&thread, &attributes, run, NULL))
        return 1;
    return pthread_join(thread, NULL);
}
