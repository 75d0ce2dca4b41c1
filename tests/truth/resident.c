// SPDX-License-Identifier: Apache-2.0
// A heap with as much live as free in holes; the twin holds all of it.
//
// claim: resident
// both: live_bytes
// flags: -O2
// flags: -O3 -s
// needs: look-within
#include "ledger.h"

#ifndef WHOLE
#define WHOLE "rss_bytes"
#endif
enum { BLOCKS = 6000, BYTES = 4000, LAST_BYTES = 4 << 20, IDLE_MS = 1200 };

static char *blocks[BLOCKS];

int main(void) {
    const double begin = now_ns();
    for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(malloc(BYTES), 1, BYTES);
    // the last one is above the others, which do not go back to the system
    for (int i = 0; HOLDS && i < BLOCKS - 1; i += 2) free(blocks[i]);
    const double there = now_ns() - begin;
    wait_ms(IDLE_MS / 4);
    // resident memory is highest afterwards
    seen = memset(malloc(LAST_BYTES), 1, LAST_BYTES);
    wait_ms(IDLE_MS);
    const double live = (double)BLOCKS * BYTES / (HOLDS ? 2 : 1);
    // the recording began a little before
    ledger("at_ns", there + 150e6, there + 600e9);
    ledger("live_bytes", live - BYTES, live + LAST_BYTES + 2 * BYTES);
    ledger(WHOLE, (double)BLOCKS * BYTES, 1.5 * BLOCKS * BYTES + 8e6);
    return 0;
}
