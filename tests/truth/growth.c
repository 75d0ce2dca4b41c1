// SPDX-License-Identifier: Apache-2.0
// A store that grows all the time; its twin keeps the last hundred sessions. Beside a cache of
// CACHE_MIB MiB nothing else is allocated, so that few snapshots are taken.
//
// claim: growth
// flags: -O2
// flags: -O0 -DTHREADS=8
// flags: -O3 -DIDLE_MS=400
// flags: -O1 -DCACHE_MIB=100
// saves: bytes at_exit.bytes
#include "ledger.h"

#ifndef SLACK
#define SLACK 0.1  // how much less than all it may be, and more
#endif
#ifndef IDLE_MS
#define IDLE_MS 0
#endif
#ifndef CACHE_MIB
#define CACHE_MIB 0
#endif
enum { ROUNDS = 220, EACH = 40 / THREADS, BYTES = 1000, RING = 100 };

static char *sessions[THREADS][ROUNDS * EACH];

APART static char *open_session(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

APART static void serve(void) {
    char *page = malloc(100000);
    seen = page;
    free(page);
}

APART static void fill_cache(void) {
    for (int i = 0; i < CACHE_MIB; i++) seen = malloc(1 << 20);
}

static void *work(void *number) {
    char **list = sessions[(size_t)number];
    wait_ms(IDLE_MS);
    for (int i = 0; i < ROUNDS * EACH; i++) {
        list[i] = open_session();
        if (!CACHE_MIB) serve();
        if (!HOLDS && i >= RING / THREADS) free(list[i - RING / THREADS]);
        if (i % EACH == 0) wait_ms(11);
    }
    return NULL;
}

int main(void) {
    fill_cache();
    const double all = (double)ROUNDS * EACH * THREADS * BYTES, begin = now_ns();
    in_threads(work);
    const double s = (now_ns() - begin - IDLE_MS * 1e6) / 1e9;
    ledger("last_bytes", all * (1 - SLACK), all * (1 + SLACK));
    ledger("bytes_per_s", all / s * (0.7 - SLACK), all / s * (1.3 + SLACK));
    ledger_name("where", "open_session");
    ledger("is_freed", 0, 0);
    return 0;
}
