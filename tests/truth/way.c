// SPDX-License-Identifier: Apache-2.0
// One of the functions that work calls allocates nearly all; of the twin's threads each has a
// function of its own, and no function is told for both.
//
// claim: way
// true: bytes of_bytes where
// flags: -O2
// flags: -O0
// flags: -O3 -DTHREADS=8
#include "ledger.h"

enum { BLOCKS = 6000 / THREADS, BYTES = 1000 };

static void *volatile kept[THREADS + 2][2 * BLOCKS];

#define TAKE(thread, first, end)                                                                   \
    for (int i = (first); i < (end); i++) kept[thread][i] = malloc(BYTES)

APART static void load(size_t thread) {
    TAKE(thread, 0, BLOCKS);
    seen = (void *)kept;
}

APART static void cache(size_t thread) {
    TAKE(thread, BLOCKS, BLOCKS + BLOCKS / 10);
    seen = (void *)kept;
}

static void *work(void *thread) {
    load((size_t)thread);
    cache((size_t)thread);
    return NULL;
}

static void *load_alone(void *unused) {
    load(0);
    return unused;
}

static void *cache_alone(void *unused) {
    TAKE(1, 0, BLOCKS);
    return unused;
}

static void *third_alone(void *unused) {
    TAKE(2, 0, BLOCKS);
    return unused;
}

static void start(void *(*run)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL)) abort();
}

int main(void) {
    if (HOLDS) {
        in_threads(work);
    } else {
        start(load_alone);
        start(cache_alone);
        start(third_alone);
    }
    const double mine = (double)BLOCKS * THREADS * BYTES;
    // the C library's own blocks, and those of threads
    ledger("bytes", mine, mine + 20000);
    ledger("of_bytes", mine * 1.09, mine * 1.1 + 80000);
    ledger_name("where", "load");
    return 0;
}
