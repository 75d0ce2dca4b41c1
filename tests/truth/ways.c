// SPDX-License-Identifier: Apache-2.0
// Threads of three functions allocate a third each; the twin's have one function.
//
// claim: ways
// true: of_bytes parts
// flags: -O2
// flags: -O0
// flags: -O3 -DTHREADS=8
#include "ledger.h"

enum { BLOCKS = 6000 / THREADS, BYTES = 1000 };

static void *volatile kept[3][THREADS][BLOCKS];

#define TAKE(third, thread, count)                                                                 \
    for (int i = 0; i < (count); i++) kept[third][thread][i] = malloc(BYTES)

static void *parse(void *thread) {
    TAKE(0, (size_t)thread, BLOCKS);
    return NULL;
}

static void *store(void *thread) {
    TAKE(1, (size_t)thread, BLOCKS - BLOCKS / 10);
    return NULL;
}

static void *render(void *thread) {
    TAKE(2, (size_t)thread, BLOCKS - BLOCKS / 5);
    return NULL;
}

static void start(void *(*run)(void *)) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i)) abort();
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    start(parse);
    start(HOLDS ? store : parse);
    start(HOLDS ? render : parse);
    const double mine = 2.7 * BLOCKS * THREADS * BYTES;
    // the C library's own blocks, and those of threads
    ledger("of_bytes", mine * 0.99, mine + 80000);
    ledger_name("parts", "parse 37 %, store 33 %");
    return 0;
}
