// SPDX-License-Identifier: Apache-2.0
// Thousands of lists with room for far more than they have; those of its twin are full. None of
// them is so large that it lies in a mapping of its own.
//
// claim: untouched
// flags: -O2
// flags: -O0 -s -DTHREADS=8
// needs: look-at-peak
// saves: bytes peak.bytes
#include "ledger.h"

enum { LISTS = 4000 / THREADS, BYTES = 12 << 10, USED = 200 };

APART static char *reserve(void) {
    return memset(malloc(HOLDS ? BYTES : USED), 1, USED);
}

static void *work(void *unused) {
    for (int i = 0; i < LISTS; i++) seen = reserve();
    wait_ms(600);
    return unused;
}

int main(void) {
    in_threads(work);
    // two of three pages of a list, but for those of which a neighbour has a part
    ledger("bytes", (double)LISTS * THREADS * BYTES / 2, (double)LISTS * THREADS * BYTES * 0.8);
    return 0;
}
