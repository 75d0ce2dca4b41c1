// SPDX-License-Identifier: Apache-2.0
// Blocks that are freed at once, or after one millisecond; those of its twin wait longer than any
// bound that is claimed where the clock is late.
//
// claim: ages
// needs: ages-clock
// flags: -O2
// flags: -O1 -DBUSY_MS=1
// run: --ages
// saves: calls totals.allocations
#include "ledger.h"

#ifndef BUSY_MS
#define BUSY_MS 0
#endif
enum { ROUNDS = 20, BLOCKS = 1000, WAIT_MS = 120 };

APART static char *take(void) {
    return malloc(32);
}

int main(void) {
    static char *blocks[BLOCKS];
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = now_ns();
        for (int j = 0; j < BLOCKS; j++) {
            if (!MENDED || !blocks[j]) blocks[j] = take();
            if (HOLDS && !BUSY_MS && !MENDED) free(blocks[j]);
        }
        if (!HOLDS) wait_ms(WAIT_MS);
        while (now_ns() - begin < BUSY_MS * 1e6) {
        }
        for (int j = 0; (!HOLDS || BUSY_MS) && j < BLOCKS; j++) free(blocks[j]);
    }
    // the machine may have stopped us in between; of some the clock moves meanwhile
    ledger("blocks", ROUNDS * BLOCKS * (BUSY_MS ? 0.25 : 0.9), ROUNDS * BLOCKS);
    ledger("bound_ns", BUSY_MS * 1e6 + 1, 100e6);
    ledger_name("where", "take");
    return 0;
}
