// SPDX-License-Identifier: Apache-2.0
// Threads that follow one another, and each frees one block and leaves another; those of the twin
// live together.
//
// claim: thread_accounts
// flags: -O2
// flags: -O0
#include "ledger.h"

enum { JOBS = 40 };

static pthread_barrier_t all;

static void *job(void *number) {
    char name[16];
    snprintf(name, sizeof name, "job%zu", (size_t)number);
    pthread_setname_np(pthread_self(), name);
    void *own = malloc(500);
    seen = malloc(1000);
    free(own);
    if (!HOLDS) pthread_barrier_wait(&all);
    return NULL;
}

int main(void) {
    pthread_t threads[JOBS];
    pthread_barrier_init(&all, NULL, JOBS);
    for (int i = 0; i < JOBS; i++) {
        if (pthread_create(&threads[i], NULL, job, (void *)(size_t)i)) abort();
        if (HOLDS) pthread_join(threads[i], NULL);
    }
    for (int i = 0; !HOLDS && i < JOBS; i++) pthread_join(threads[i], NULL);
    ledger("threads", JOBS, JOBS);
    ledger("accounts", 1, 1);
    return 0;
}
