// SPDX-License-Identifier: Apache-2.0
// Threads allocate more at the second commit: runs of such may vary, and there is one of each. The
// twin does it in one thread, so that it is counted.
//
// claim: may_have_moved
// file: history
// flags: -O2 -DTHREADS=4
#include "ledger.h"

enum { BYTES = 100, BEFORE = 100, AFTER = 10000 };

static int blocks = BEFORE;

static void *allocate(void *unused) {
    for (int i = 0; i < blocks; i++) seen = malloc(BYTES);
    return unused;
}

int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "after")) blocks = AFTER;
    if (HOLDS)
        in_threads(allocate);
    else
        for (int i = 0; i < THREADS; i++) allocate(NULL);
    ledger("runs_before", 1, 1);
    ledger("runs_missing", 0, 10);
    return 0;
}
