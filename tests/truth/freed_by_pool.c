// SPDX-License-Identifier: Apache-2.0
// Numbered workers free what the main thread makes, each a little; in its twin the main thread does
// it itself.
//
// claim: freed_by
// flags: -O2
// flags: -O2 -DTHREADS=8
#include "ledger.h"

enum { JOBS = 24000, BYTES = 200, BATCH = JOBS / 40 };

static char *jobs[BATCH];
static pthread_barrier_t is_made, is_done;

APART static char *make(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

static void *works(void *number) {
    char name[16];
    snprintf(name, sizeof name, "w-%zu", (size_t)number);
    pthread_setname_np(pthread_self(), name);
    for (int round = 0; round < JOBS / BATCH; round++) {
        pthread_barrier_wait(&is_made);
        for (size_t i = (size_t)number; HOLDS && i < BATCH; i += THREADS) free(jobs[i]);
        pthread_barrier_wait(&is_done);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&is_made, NULL, THREADS + 1);
    pthread_barrier_init(&is_done, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, works, (void *)i)) abort();
    for (int round = 0; round < JOBS / BATCH; round++) {
        for (int i = 0; i < BATCH; i++) jobs[i] = make();
        pthread_barrier_wait(&is_made);
        pthread_barrier_wait(&is_done);
        for (int i = 0; !HOLDS && i < BATCH; i++) free(jobs[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ledger("blocks", JOBS, JOBS);
    ledger_name("to", THREADS > 1 ? "w-*" : "w-0");
    return 0;
}
