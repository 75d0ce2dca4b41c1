// SPDX-License-Identifier: Apache-2.0
// A peak that is reached early and held; that of its twin comes late, a hair above what was held
// for long: less than a 256th of it.
//
// claim: peak
// both: at_ns
// flags: -O2
// flags: -O0
#include "ledger.h"

enum { BLOCKS = 4000, BYTES = 1000, LITTLE = 40, LITTLE_BYTES = 200, IDLE_MS = 1200 };

// Blocks that stay, each with one that goes.
APART static void add_little(void) {
    for (int i = 0; i < LITTLE; i++) {
        seen = malloc(LITTLE_BYTES);
        void *gone = malloc(LITTLE_BYTES);
        seen = gone;
        free(gone);
    }
}

int main(void) {
    const double begin = now_ns();
    for (int i = 0; i < BLOCKS; i++) seen = malloc(BYTES);
    const double there = now_ns() - begin;
    wait_ms(IDLE_MS);
    if (!HOLDS) add_little();
    // since the program's start: a little is not ours
    ledger("at_ns", HOLDS ? 0 : IDLE_MS * 1e6, HOLDS ? there + 200e6 : 60e9);
    return 0;
}
