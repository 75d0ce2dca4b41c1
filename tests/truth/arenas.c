// SPDX-License-Identifier: Apache-2.0
// Six threads need memory one after the other, each of an arena of its own; in its twin they need
// it at the same time.
//
// claim: arenas
// flags: -O2
// needs: looks
// fix: MALLOC_ARENA_MAX=1
// saves: bytes rss.peak_bytes
#include "ledger.h"

enum { WORKERS = 6, PIECES = 10000, BYTES = 1000, KEPT_EVERY = 20 };

static pthread_barrier_t all;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char *pieces[WORKERS][PIECES];

static void *work(void *number) {
    char **own = pieces[(size_t)number];
    seen = malloc(1);
    pthread_barrier_wait(&all);
    if (HOLDS) pthread_mutex_lock(&turn);
    for (int i = 0; i < PIECES; i++) own[i] = memset(malloc(BYTES), 1, BYTES);
    if (!HOLDS) pthread_barrier_wait(&all);
    for (int i = 0; i < PIECES; i++)
        if (i % KEPT_EVERY) free(own[i]);
    if (HOLDS) pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&all);
    wait_ms(800);
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void) {
    pthread_t threads[WORKERS];
    pthread_barrier_init(&all, NULL, WORKERS);
    for (size_t i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) abort();
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    ledger("arenas", WORKERS + 1, WORKERS + 1);
    return 0;
}
