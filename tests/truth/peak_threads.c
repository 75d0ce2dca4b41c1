// SPDX-License-Identifier: Apache-2.0
// Hundreds of threads, one after the other, that each leave a block: the peak comes with the last.
// Those of the twin leave none, and the first one has it.
//
// claim: peak
// both: bytes at_ns
// flags: -O2
#include "ledger.h"

enum { JOBS = 400, BLOCKS = 50, BYTES = 1000, LEFT_BYTES = 100 };

static int number;

static void *job(void *unused) {
    char *blocks[BLOCKS];
    const int count = HOLDS || !number ? BLOCKS : BLOCKS / 2;
    for (int i = 0; i < count; i++) seen = blocks[i] = malloc(BYTES);
    for (int i = 0; i < count; i++) free(blocks[i]);
    if (HOLDS) seen = malloc(LEFT_BYTES);
    return unused;
}

int main(void) {
    const double begin = now_ns();
    double first = 0;
    wait_ms(20);  // a peak in the first tick of the clock has no time
    for (number = 0; number < JOBS; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, job, NULL)) abort();
        pthread_join(thread, NULL);
        if (!number) first = now_ns() - begin;
        if (number % 10 == 0) wait_ms(10);
    }
    const double all = now_ns() - begin, held = BLOCKS * BYTES;
    ledger("bytes", held + HOLDS * (JOBS - 1) * LEFT_BYTES - 2000,
           held + HOLDS * JOBS * LEFT_BYTES + 4000);
    ledger("at_ns", HOLDS ? all * 0.7 : 0, HOLDS ? all + 200e6 : first + 250e6);
    return 0;
}
