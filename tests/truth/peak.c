// SPDX-License-Identifier: Apache-2.0
// A peak that is reached early and held; that of its twin comes at the end, or is a hair above one
// that was held for long (LITTLE).
//
// claim: peak
// both: bytes blocks at_ns
// flags: -O2
// flags: -O0 -DTHREADS=8
// flags: -O3 -s -DFORKS=1
// flags: -O1 -DLITTLE=1
#include "ledger.h"
#include <sys/wait.h>

#ifndef LITTLE
#define LITTLE 0
#endif
#ifndef FORKS
#define FORKS 0
#endif
enum {
    BLOCKS = 4000 / THREADS,
    EARLY = 1000,
    LATE = 1500,
    IDLE_MS = 1200,
    LITTLE_BLOCKS = 40,
    LITTLE_BYTES = 200
};

static double begin;

APART static void hold(size_t bytes) {
    for (int i = 0; i < BLOCKS; i++) seen = malloc(bytes);
}

static void *early(void *unused) {
    hold(EARLY);
    return unused;
}

// Less than a 256th of what there is: blocks that stay, each with one that goes.
static void add_little(void) {
    for (int i = 0; i < LITTLE_BLOCKS; i++) {
        seen = malloc(LITTLE_BYTES);
        void *gone = malloc(LITTLE_BYTES);
        seen = gone;
        free(gone);
    }
}

static void *late(void *unused) {
    if (LITTLE)
        add_little();
    else
        hold(LATE);
    return unused;
}

int main(void) {
    begin = now_ns();
    in_threads(early);
    const double all = (double)BLOCKS * THREADS, there = now_ns() - begin;
    if (FORKS && !fork()) _exit(0);
    if (FORKS) wait(NULL);
    wait_ms(IDLE_MS);
    if (!HOLDS) in_threads(late);
    const double more = HOLDS ? 0 : LITTLE ? LITTLE_BLOCKS : all;
    const double bytes = all * EARLY + more * (LITTLE ? LITTLE_BYTES : LATE);
    // the C library's own blocks, and those of threads
    ledger("bytes", bytes, bytes + 80000);
    ledger("blocks", all + more, all + more + 100);
    // since the program's start: a little is not ours
    ledger("at_ns", HOLDS ? 0 : IDLE_MS * 1e6, HOLDS ? there + 200e6 : 60e9);
    return 0;
}
