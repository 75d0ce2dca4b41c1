// SPDX-License-Identifier: Apache-2.0
// A table that is filled at the start, before a program serves; its twin is filled to the end.
//
// claim: growth_stopped
// flags: -O2
// flags: -O1 -s -DTHREADS=8
// flags: -O2 -DFILLED=158
#include "ledger.h"

#ifndef FILLED  // rounds, of all: 158 end just within the last third
#define FILLED 40
#endif
enum { ROUNDS = 230, ROWS = 8000 / THREADS, BYTES = 500 };

APART static void add_row(void) {
    seen = memset(malloc(BYTES), 1, BYTES);
}

APART static void serve(void) {
    char *page = malloc(200000);
    seen = page;
    free(page);
}

static void *work(void *unused) {
    const int rounds = HOLDS ? FILLED : ROUNDS;
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        for (int row = 0; i < rounds && row < ROWS / rounds; row++) add_row();
        for (int page = 0; page < 20; page++) serve();
        wait_ms(11);
    }
    return NULL;
}

int main(void) {
    const double all = (double)(ROWS / FILLED * FILLED) * THREADS * BYTES;
    in_threads(work);
    ledger("last_bytes", all * 0.95, all);
    ledger("until_ns", 0, FILLED == 40 ? 1.3e9 : 60e9);
    return 0;
}
