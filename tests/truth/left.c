// SPDX-License-Identifier: Apache-2.0
// Blocks that are never freed; its twin frees most of them at its exit.
//
// claim: left
// both: bytes blocks
// flags: -O2
// flags: -O0 -s -DTHREADS=8
#include "ledger.h"

enum { BLOCKS = 4000 / THREADS, BYTES = 500, LEFT = BLOCKS / 10 };

static char *blocks[THREADS][BLOCKS];

static void *work(void *number) {
    for (int i = 0; i < BLOCKS; i++) blocks[(size_t)number][i] = malloc(BYTES);
    return NULL;
}

static void clean_up(void) {
    for (int i = 0; i < THREADS; i++)
        for (int j = LEFT; !HOLDS && j < BLOCKS; j++) free(blocks[i][j]);
}

int main(void) {
    const double left = (double)THREADS * (HOLDS ? BLOCKS : LEFT);
    atexit(clean_up);
    in_threads(work);
    ledger("bytes", left * BYTES, left * BYTES + 80000);
    ledger("blocks", left, left + 100);
    return 0;
}
