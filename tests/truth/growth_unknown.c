// SPDX-License-Identifier: Apache-2.0
// A leak in a program that is over in no time; its twin goes on for long enough.
//
// claim: growth_unknown
// flags: -O2
#include "ledger.h"

enum { BLOCKS = 220, BYTES = 10000 };

APART static void leak(void) {
    seen = memset(malloc(BYTES), 1, BYTES);
    free(malloc(200000));
}

int main(void) {
    for (int i = 0; i < BLOCKS; i++) {
        leak();
        if (!HOLDS) wait_ms(11);
    }
    ledger("least_snapshots", 5, 5);
    return 0;
}
