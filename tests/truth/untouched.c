// SPDX-License-Identifier: Apache-2.0
// Buffers that are hardly used; its twin uses all of them.
//
// claim: untouched
// flags: -O2
// flags: -O3 -DTHREADS=4
// needs: look-at-peak
// saves: bytes peak.bytes
#include "ledger.h"

enum { BYTES = (24 << 20) / THREADS, USED = BYTES / 32 };

APART static void make_buffer(void) {
    char *buffer = malloc(MENDED ? USED : BYTES);
    seen = memset(buffer, 1, HOLDS ? USED : BYTES);
}

static void *work(void *unused) {
    (void)unused;
    make_buffer();
    wait_ms(700);
    return NULL;
}

int main(void) {
    // of many small blocks, none of which lies in a mapping of its own
    for (int i = 0; i < 1000; i++) seen = memset(malloc(1000), 1, 1000);
    in_threads(work);
    // what became resident after the look may be of them
    ledger("bytes", (double)THREADS * (BYTES - USED) - (2 << 20), (double)THREADS * (BYTES - USED));
    ledger_name("where", "make_buffer");
    return 0;
}
