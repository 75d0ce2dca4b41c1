// SPDX-License-Identifier: Apache-2.0
// Small pieces that are free, of which malloc keeps lists of their own and marks none as free;
// those of its twin are in use.
//
// claim: resident
// flags: -O2
// both: live_bytes free_bytes
// needs: looks
#include "ledger.h"

enum { PIECES = 30000, BYTES = 120, KEPT_EVERY = 20 };

int main(void) {
    const double all = (double)PIECES * BYTES, begin = now_ns();
    static char *pieces[PIECES], text[BUFSIZ];
    setvbuf(stdout, text, _IOFBF,
            sizeof text);  // a large block would join the small ones that are free
    for (int i = 0; i < PIECES; i++) pieces[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = 0; HOLDS && i < PIECES; i++)
        if (i % KEPT_EVERY) free(pieces[i]);
    // a good part of the time, also of a machine on which the rest took long
    wait_ms(1600 + (long)((now_ns() - begin) / 1e6));
    ledger("live_bytes", HOLDS ? 0.04 * all : all, HOLDS ? 0.2 * all : all + 8192);
    ledger("free_bytes", HOLDS ? 0.8 * all : 0, HOLDS ? 1.1 * all : 0.1 * all);
    return 0;
}
