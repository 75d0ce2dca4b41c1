// SPDX-License-Identifier: Apache-2.0
// A heap that stays as it is while its blocks come and go, again and again: the highest of many
// sums of samples is twice as much. That of its twin is four times as large at the end.
//
// claim: peak
// both: bytes
// flags: -O2
// flags: -O2 -DTHREADS=4
// run: --sample --rate=32K --seed=1
#include "ledger.h"

enum { BLOCKS = 5200 / THREADS, BYTES = 100, TURNS = 300, TIMES = 4 };

static pthread_barrier_t all;

APART static void *block_of(size_t bytes) {
    return malloc(bytes);
}

static void *work(void *number) {
    void **blocks = calloc(BLOCKS, sizeof *blocks);
    unsigned random = (unsigned)(size_t)number + 1;
    for (int i = 0; i < BLOCKS; i++) blocks[i] = block_of(BYTES);
    for (int i = 0; i < BLOCKS * TURNS; i++) {
        random = random * 1103515245 + 12345;
        void **block = &blocks[(random >> 8) % BLOCKS];
        free(*block);
        *block = block_of(BYTES);
    }
    for (int i = 0; !HOLDS && i < BLOCKS * (TIMES - 1); i++) seen = block_of(BYTES);
    pthread_barrier_wait(&all);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    return NULL;
}

int main(void) {
    const double held = (double)BLOCKS * BYTES * THREADS * (HOLDS ? 1 : TIMES);
    pthread_barrier_init(&all, NULL, THREADS);
    in_threads(work);
    ledger("bytes", held * 0.65, held * 1.4);
    return 0;
}
