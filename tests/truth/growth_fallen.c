// SPDX-License-Identifier: Apache-2.0
// A table that grows and stays; the one of the twin has been several times as large before, and
// given back most of it.
//
// claim: growth_stopped
// flags: -O2
// flags: -O3 -s
#include "ledger.h"

enum { ROWS = 10000, LARGE = 5, ROUNDS = 100, BYTES = 700 };

static char *rows[ROWS * LARGE];

APART static char *add_row(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

int main(void) {
    const int count = HOLDS ? ROWS : ROWS * LARGE;
    const double begin = now_ns();
    for (int i = 0; i < count; i++) {
        rows[i] = add_row();
        if (i % (count / ROUNDS) == 0) wait_ms(10);
    }
    ledger("until_ns", 0, now_ns() - begin + 300e6);
    for (int i = ROWS; i < count; i++) free(rows[i]);
    wait_ms(1800);
    ledger("last_bytes", (double)ROWS * BYTES * 0.98, (double)ROWS * BYTES);
    return 0;
}
