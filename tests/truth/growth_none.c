// SPDX-License-Identifier: Apache-2.0
// Work that goes up and down; its twin forgets one of two blocks.
//
// claim: growth_none
// flags: -O2
// flags: -O3 -DTHREADS=8
#include "ledger.h"

enum { ROUNDS = 225, BLOCKS = 200 / THREADS, BYTES = 1000 };

APART static char *take(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

static void *work(void *unused) {
    char *blocks[BLOCKS];
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < BLOCKS; j++) blocks[j] = take();
        wait_ms(10);
        for (int j = 0; j < BLOCKS; j++)
            if (HOLDS || j % 2) free(blocks[j]);
        char *page = malloc(1000000);
        seen = page;
        free(page);
    }
    return NULL;
}

int main(void) {
    in_threads(work);
    ledger("snapshots", 5, 1e6);
    ledger("least_bytes", 5000, 1 << 20);
    return 0;
}
