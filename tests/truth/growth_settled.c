// SPDX-License-Identifier: Apache-2.0
// Two tables that are filled at once, and nothing more is allocated: no look follows that could see
// them stay. The twin fills the second one to the end.
//
// claim: growth_none
// flags: -O2
// flags: -O0 -DTHREADS=8
#include "ledger.h"

enum { ROWS = 12000 / THREADS, OTHER_ROWS = 2400 / THREADS, ROUNDS = 240, BYTES = 400 };

APART static void add_row(void) {
    seen = memset(malloc(BYTES), 1, BYTES);
}

APART static void add_other(void) {
    seen = memset(malloc(BYTES), 1, BYTES);
}

static void *work(void *unused) {
    for (int row = 0; row < ROWS; row++) add_row();
    for (int round = 0; round < ROUNDS; round++) {
        for (int row = 0; row < OTHER_ROWS / ROUNDS; row++)
            if (!HOLDS) add_other();
        for (int row = 0; row < OTHER_ROWS; row++)
            if (HOLDS && !round) add_other();
        wait_ms(10);
    }
    return unused;
}

int main(void) {
    in_threads(work);
    ledger("stopped", 0, 3);  // 0: the first look came when they were full
    return 0;
}
