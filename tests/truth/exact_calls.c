// SPDX-License-Identifier: Apache-2.0
// Blocks are drawn at random (--sample), while calls are counted; of its twin all is known.
//
// claim: exact_calls
// flags: -O2
// run-1: --sample
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
