// SPDX-License-Identifier: Apache-2.0
// A peak that is reached early and held; that of its twin comes at the end.
//
// claim: peak
// both: bytes blocks at_ns
// flags: -O2
// flags: -O0 -DTHREADS=8
// flags: -O3 -s -DFORKS=1
#include "ledger.h"
#include <sys/wait.h>

#ifndef FORKS
#define FORKS 0
#endif
enum { BLOCKS = 4000 / THREADS, EARLY = 1000, LATE = 1500, IDLE_MS = 1200 };

static double begin;

APART static void hold(size_t bytes) {
    for (int i = 0; i < BLOCKS; i++) seen = malloc(bytes);
}

static void *early(void *unused) {
    hold(EARLY);
    return unused;
}

static void *late(void *unused) {
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
    // the C library's own blocks, and those of threads
    ledger("bytes", all * (HOLDS ? EARLY : EARLY + LATE),
           all * (HOLDS ? EARLY : EARLY + LATE) + 80000);
    ledger("blocks", HOLDS ? all : all * 2, (HOLDS ? all : all * 2) + 100);
    // since the program's start: a little is not ours
    ledger("at_ns", HOLDS ? 0 : IDLE_MS * 1e6, HOLDS ? there + 200e6 : 60e9);
    return 0;
}
