// SPDX-License-Identifier: Apache-2.0
// Threads with small stacks, each right below memory that was mapped before and is touched: the
// kernel makes one mapping of both. Waits for its input to end.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, MAPPED = 5 << 20, STACK = 128 << 10 };

static pthread_barrier_t start, end;

static void *wait_there(void *unused) {
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&end);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_barrier_init(&start, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (int i = 0; i < THREADS; i++) {
        void *memory =
            mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 1;
        memset(memory, 1, MAPPED);
        if (pthread_create(&threads[i], &attributes, wait_there, NULL)) return 1;
    }
    pthread_barrier_wait(&start);
    printf("%d\n", THREADS * MAPPED);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    pthread_barrier_wait(&end);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
