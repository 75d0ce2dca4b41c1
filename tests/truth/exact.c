// SPDX-License-Identifier: Apache-2.0
// Each call is counted; the blocks of its twin are drawn at random (--sample).
//
// claim: exact
// flags: -O2
// flags: -O0 -DTHREADS=8
// run-0: --sample
#include "ledger.h"

enum { CALLS = 20000 / THREADS };

static void *work(void *unused) {
    for (int i = 0; i < CALLS; i++) {
        seen = malloc(100);
        free(seen);
    }
    return unused;
}

int main(void) {
    in_threads(work);
    ledger("calls", (double)CALLS * THREADS, (double)CALLS * THREADS + 100);
    return 0;
}
