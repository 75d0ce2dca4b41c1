// SPDX-License-Identifier: Apache-2.0
// A buffer that is grown line by line; its twin reserves what it needs.
//
// claim: realloc
// flags: -O2
// flags: -O0 -DTHREADS=8
// flags: -O3 -DBEGIN_APART=1
// saves: calls totals.allocations
#include "ledger.h"

#ifndef BEGIN_APART
#define BEGIN_APART 0
#endif
enum { LINES = 2000, STEP = 1000 };

APART static void append_lines(void) {
    char *text = BEGIN_APART ? malloc(STEP) : NULL;
    size_t room = BEGIN_APART ? STEP : 0;
    for (size_t used = 0; used < (size_t)LINES * STEP; used += STEP) {
        if (used + STEP > room) {
            room = HOLDS ? used + STEP : (size_t)LINES * STEP;
            text = realloc(text, room);
        }
        memset(text + used, 'x', STEP);
        if (used % (100 * STEP) == 0) seen = malloc(STEP);  // it cannot be grown where it is
    }
    free(text);
}

static void *work(void *unused) {
    append_lines();
    return unused;
}

int main(void) {
    in_threads(work);
    ledger("times", LINES - 1, LINES - 1);
    if (!BEGIN_APART) ledger("buffers", THREADS, THREADS);
    ledger_name("where", "append_lines");
    return 0;
}
