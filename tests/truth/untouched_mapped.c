// SPDX-License-Identifier: Apache-2.0
// Blocks that just lie in mappings of their own, of which the first page alone is used; those of
// its twin are full.
//
// claim: untouched
// flags: -O2
// flags: -O1 -DTHREADS=8
// needs: look-at-peak
// saves: bytes peak.bytes
#include "ledger.h"

enum { BLOCKS = 320 / THREADS, BYTES = 128 << 10, USED = 200, FIRST_BYTES = 4096 - 16 };

APART static char *reserve(void) {
    return memset(malloc(MENDED ? FIRST_BYTES : BYTES), 1, HOLDS ? USED : BYTES);
}

static void *work(void *unused) {
    for (int i = 0; i < BLOCKS; i++) seen = reserve();
    wait_ms(1200);
    return unused;
}

int main(void) {
    // behind the first page 31 whole ones, and 16 bytes that share theirs with what malloc adds
    const double untouched = (double)BLOCKS * THREADS * (BYTES - FIRST_BYTES);
    in_threads(work);
    ledger("bytes", untouched - (2 << 20), untouched);
    ledger("of_bytes", (double)BLOCKS * THREADS * BYTES,
           (double)BLOCKS * THREADS * BYTES + (1 << 20));
    ledger_name("where", "reserve");
    return 0;
}
