// SPDX-License-Identifier: Apache-2.0
// Blocks that live for a while. The clock of their ages is cairn's: that of the twin stops cairn
// meanwhile, so that it does not see them grow old.
//
// claim: ages
// needs: ages-clock
// flags: -O2
// run: --ages
#include "ledger.h"
#include <signal.h>

enum { ROUNDS = 4, BLOCKS = 10000, OLD_MS = 120 };

APART static char *take(void) {
    return malloc(32);
}

int main(void) {
    static char *blocks[BLOCKS];
    for (int i = 0; i < ROUNDS; i++) {
        if (!HOLDS) kill(getppid(), SIGSTOP);
        if (!HOLDS) wait_ms(OLD_MS / 4);
        for (int j = 0; j < BLOCKS; j++) {
            blocks[j] = take();
            if (HOLDS) free(blocks[j]);
        }
        if (!HOLDS) wait_ms(OLD_MS);
        for (int j = 0; !HOLDS && j < BLOCKS; j++) free(blocks[j]);
        if (!HOLDS) kill(getppid(), SIGCONT);
        wait_ms(10);
    }
    ledger("blocks", ROUNDS * BLOCKS * 0.9, ROUNDS * BLOCKS);
    return 0;
}
