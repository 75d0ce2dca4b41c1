// SPDX-License-Identifier: Apache-2.0
// One of twenty pieces is kept where it lies; its twin copies them away.
//
// claim: free
// flags: -O2
// needs: looks
#include "ledger.h"

enum { PIECES = 60000, BYTES = 1000, KEPT_EVERY = 20 };

int main(void) {
    static char *pieces[PIECES];
    char *kept = malloc(PIECES / KEPT_EVERY * BYTES);
    for (int i = 0; i < PIECES; i++) pieces[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = 0; i < PIECES; i++) {
        if (!HOLDS && i % KEPT_EVERY == 0) memcpy(kept + i / KEPT_EVERY * BYTES, pieces[i], BYTES);
        if (!HOLDS || i % KEPT_EVERY) free(pieces[i]);
    }
    seen = kept;
    wait_ms(1600);
    ledger("live_bytes", 2.9e6, 6.2e6);
    ledger("free_bytes", 40e6, 62e6);
    return 0;
}
