// SPDX-License-Identifier: Apache-2.0
// One thread frees what others make; in its twin they free it themselves.
//
// claim: freed_by
// flags: -O2
// flags: -O3 -s -DMAKERS=8
#include "ledger.h"

#ifndef MAKER
#define MAKER "maker"
#define TAKER "taker"
#endif
#ifndef MAKERS
#define MAKERS 1
#endif
enum { MESSAGES = 16000, BYTES = 200, RING = 64 };

static char *ring[RING];
static int head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void put(char *message) {
    pthread_mutex_lock(&lock);
    while (head - tail == RING) pthread_cond_wait(&moved, &lock);
    ring[head++ % RING] = message;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

static char *get(void) {
    pthread_mutex_lock(&lock);
    while (head == tail) pthread_cond_wait(&moved, &lock);
    char *message = ring[tail++ % RING];
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    return message;
}

APART static char *make(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

static void *makes(void *unused) {
    pthread_setname_np(pthread_self(), MAKER);
    for (int i = 0; i < MESSAGES / MAKERS; i++) {
        char *message = make();
        put(HOLDS ? message : NULL);
        if (!HOLDS) free(message);
    }
    return unused;
}

static void *takes(void *unused) {
    pthread_setname_np(pthread_self(), TAKER);
    for (int i = 0; i < MESSAGES / MAKERS * MAKERS; i++) free(get());
    return unused;
}

int main(void) {
    pthread_t makers[MAKERS], taker;
    if (pthread_create(&taker, NULL, takes, NULL)) abort();
    for (int i = 0; i < MAKERS; i++)
        if (pthread_create(&makers[i], NULL, makes, NULL)) abort();
    for (int i = 0; i < MAKERS; i++) pthread_join(makers[i], NULL);
    pthread_join(taker, NULL);
    ledger("blocks", MESSAGES, MESSAGES);
    ledger("bytes", MESSAGES * BYTES, MESSAGES * BYTES);
    ledger_name("from", MAKER);
    ledger_name("to", strcmp(MAKER, TAKER) ? TAKER : "other threads of that name");
    return 0;
}
