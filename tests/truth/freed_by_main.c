// SPDX-License-Identifier: Apache-2.0
// The main thread frees what workers make, all the time; in its twin it frees it all at the end, as
// destructors do.
//
// claim: freed_by
// flags: -O2
// flags: -O0 -DALIVE=1
#include "ledger.h"

#ifndef ALIVE
#define ALIVE 0
#endif
enum { ROUNDS = 100, BLOCKS = 300, BYTES = 300 };

static char *blocks[ROUNDS][BLOCKS];
static pthread_barrier_t round_is_made, round_is_done;

APART static char *make(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

static void *works(void *unused) {
    pthread_setname_np(pthread_self(), "worker");
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < BLOCKS; j++) blocks[i][j] = make();
        pthread_barrier_wait(&round_is_made);
        pthread_barrier_wait(&round_is_done);
    }
    while (ALIVE) pause();
    return unused;
}

static void free_round(int i) {
    for (int j = 0; j < BLOCKS; j++) free(blocks[i][j]);
}

int main(void) {
    const double all = (double)ROUNDS * BLOCKS;
    pthread_t worker;
    pthread_barrier_init(&round_is_made, NULL, 2);
    pthread_barrier_init(&round_is_done, NULL, 2);
    if (pthread_create(&worker, NULL, works, NULL)) abort();
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_is_made);
        if (HOLDS) free_round(i);
        pthread_barrier_wait(&round_is_done);
    }
    if (!ALIVE) pthread_join(worker, NULL);
    for (int i = 0; !HOLDS && i < ROUNDS; i++) free_round(i);
    ledger("blocks", all * 0.9, all);
    ledger("bytes", all * BYTES * 0.9, all * BYTES);
    ledger_name("from", "worker");
    return 0;
}
