// SPDX-License-Identifier: Apache-2.0
// One of twenty pieces is kept where it lies; its twin copies them away.
//
// claim: free
// flags: -O2
// needs: looks
// saves: bytes measured.rss_bytes
#include "ledger.h"

enum { PIECES = 60000, BYTES = 1000, KEPT_EVERY = 20 };

static double resident_bytes(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) abort();
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

int main(void) {
    const double begin = now_ns();
    static char *pieces[PIECES];
    char *kept = malloc(PIECES / KEPT_EVERY * BYTES);
    for (int i = 0; i < PIECES; i++) pieces[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = 0; i < PIECES; i++) {
        if (!HOLDS && i % KEPT_EVERY == 0) memcpy(kept + i / KEPT_EVERY * BYTES, pieces[i], BYTES);
        if (!HOLDS || i % KEPT_EVERY) free(pieces[i]);
    }
    seen = kept;
    // a good part of the time, also of a machine on which the rest took long
    wait_ms(1600 + (long)((now_ns() - begin) / 1e6));
    measured("rss_bytes", resident_bytes());
    ledger("live_bytes", 2.9e6, 6.2e6);
    ledger("free_bytes", 40e6, 62e6);
    return 0;
}
