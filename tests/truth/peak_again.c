// SPDX-License-Identifier: Apache-2.0
// Threads reach a peak, give it back, and reach it again from another call with a little more: too
// little for threads that note late, so that either may be the highest. The second peak of the twin
// is.
//
// claim: peak
// both: from_ns
// flags: -O2 -DTHREADS=8
#include "ledger.h"

enum { BYTES = 4 << 20, MORE = 1 << 10, APART_MS = 250 };

static pthread_barrier_t barrier;
static double begin, reached;

APART static char *first_load(size_t bytes) {
    return malloc(bytes);
}

APART static char *second_load(size_t bytes) {
    return malloc(bytes + MORE);
}

// All threads are here, for a while.
APART static void stay(const void *number) {
    pthread_barrier_wait(&barrier);
    if (!number) wait_ms(APART_MS);
    pthread_barrier_wait(&barrier);
}

static void *load_twice(void *number) {
    char *volatile block = first_load(BYTES);
    if (!number) reached = now_ns() - begin;
    stay(number);
    free(block);
    stay(number);
    block = second_load(HOLDS ? BYTES : BYTES / 2 * 3);
    stay(number);
    free(block);
    return NULL;
}

int main(void) {
    begin = now_ns();
    pthread_barrier_init(&barrier, NULL, THREADS);
    wait_ms(APART_MS);
    in_threads(load_twice);
    const double held = (double)BYTES * THREADS * (HOLDS ? 1 : 1.5);
    ledger("bytes", held, held + 80000);
    if (HOLDS) ledger("from_ns", reached - 50e6, reached + 200e6);
    return 0;
}
