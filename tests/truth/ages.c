// SPDX-License-Identifier: Apache-2.0
// Blocks that are freed at once; those of its twin wait for some milliseconds.
//
// claim: ages
// flags: -O2
// run: --ages
#include "ledger.h"

enum { ROUNDS = 20, BLOCKS = 1000 };

APART static char *take(void) {
    return malloc(32);
}

int main(void) {
    static char *blocks[BLOCKS];
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < BLOCKS; j++) {
            blocks[j] = take();
            if (HOLDS) free(blocks[j]);
        }
        if (!HOLDS) wait_ms(30);  // the clock of ages is the tool's, which may wait for a processor
        for (int j = 0; !HOLDS && j < BLOCKS; j++) free(blocks[j]);
    }
    // the machine may have stopped us in between
    ledger("blocks", ROUNDS * BLOCKS * 0.9, ROUNDS * BLOCKS);
    ledger_name("where", "take");
    return 0;
}
