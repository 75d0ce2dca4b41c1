// SPDX-License-Identifier: Apache-2.0
// Small blocks that lie between large ones, which are freed: each keeps a page. The twin keeps the
// large ones too, so that as much is resident, and live.
//
// claim: kept_pages
// both: live_bytes
// flags: -O2
// file: view
// view: pages
#include "ledger.h"

enum { PAIRS = 2000, SMALL = 64, LARGE = 4000 };

int main(void) {
    static char *small[PAIRS], *large[PAIRS];
    const double pair = SMALL + LARGE;
    for (int i = 0; i < PAIRS; i++) {
        small[i] = memset(malloc(SMALL), 1, SMALL);
        large[i] = memset(malloc(LARGE), 1, LARGE);
    }
    for (int i = 0; HOLDS && i < PAIRS; i++) free(large[i]);
    seen = small;
    ledger("kept_bytes", PAIRS * pair, PAIRS * pair * 1.1);
    ledger("live_bytes", PAIRS * (HOLDS ? SMALL : pair),
           PAIRS * (HOLDS ? SMALL : pair) * 1.1 + 5000);
    wait_for_input();
    return 0;
}
