// SPDX-License-Identifier: Apache-2.0
// A queue that is filled while another part of the program grows, and held until the end; that of
// the twin is emptied and filled again all the time, below a heap that is as high.
//
// claim: growth_none
// both: stopped
// flags: -O2
#include "ledger.h"

enum { ROUNDS = 250, ROWS = 10, ROW_BYTES = 2500, JOBS = 400, JOB_BYTES = 3000 };

static char *jobs[JOBS];
static int queued;

APART static void add_row(void) {
    seen = memset(malloc(ROW_BYTES), 1, ROW_BYTES);
}

APART static void add_job(void) {
    jobs[queued++] = memset(malloc(JOB_BYTES), 1, JOB_BYTES);
}

static void empty(void) {
    while (queued) free(jobs[--queued]);
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int row = 0; round < ROUNDS / 3 && row < ROWS; row++) add_row();
        if (!HOLDS && queued == JOBS) empty();
        for (int job = 0; job < JOBS / 40 && queued < JOBS; job++) add_job();
        wait_ms(10);
    }
    empty();
    // the rows, and the queue if it was held
    ledger("stopped", HOLDS ? 2 : 1, HOLDS ? 2 : 1);
    return 0;
}
