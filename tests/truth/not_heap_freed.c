// SPDX-License-Identifier: Apache-2.0
// A program that goes on when it has freed nearly all of its heap, between blocks that keep it from
// the system; its twin frees it as it ends.
//
// claim: not_heap
// true: bytes live_bytes what
// flags: -O2
// needs: looks look-when-freed
#include "ledger.h"

enum { BLOCKS = 4800, LATE_FROM = 4200, BYTES = 10000, KEPT_EACH = 20, IDLE_MS = 1200 };

static char *blocks[BLOCKS];

static void fill(int from, int to) {
    for (int i = from; i < to; i++) blocks[i] = memset(malloc(BYTES), 1, BYTES);
}

static void empty(void) {
    for (int i = 0; i < BLOCKS; i++)
        if (i % KEPT_EACH) free(blocks[i]);
}

int main(void) {
    const double all = (double)BLOCKS * BYTES, kept = all / KEPT_EACH;
    fill(0, LATE_FROM);
    if (!HOLDS) wait_ms(IDLE_MS);
    fill(LATE_FROM, BLOCKS);
    empty();
    if (HOLDS) wait_ms(IDLE_MS);
    ledger("bytes", (all - kept) * 0.7, all + 1e6);
    ledger("live_bytes", kept, kept + 300000);
    ledger_name("what", "free in the allocator");
    return 0;
}
