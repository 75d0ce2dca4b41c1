// SPDX-License-Identifier: Apache-2.0
// Thirty functions that main calls have little each, one of them twice as much; of the twin one
// function has nearly all.
//
// claim: largest
// true: bytes of_bytes where stands_out
// flags: -O2
// flags: -O0
#include "ledger.h"

enum { FUNCTIONS = 30, BLOCKS = 100, BYTES = 1000 };

static void *volatile kept[FUNCTIONS + 1][BLOCKS];
static size_t used;

#define PART(name)                                                                                 \
    APART static void name(void) {                                                                 \
        for (int i = 0; i < BLOCKS; i++) kept[used][i] = malloc(BYTES);                            \
        seen = (void *)kept[used++];                                                               \
    }
#define SIX(name)                                                                                  \
    PART(name##1) PART(name##2) PART(name##3) PART(name##4) PART(name##5) PART(name##6)
#define ALL SIX(load) SIX(sort) SIX(index) SIX(cache) SIX(draw)
ALL

#undef PART
#define PART(name) name,
    static void (*const parts[])(void) = {ALL};

int main(void) {
    const size_t count = sizeof parts / sizeof *parts;
    for (size_t i = 0; i < count; i++) parts[HOLDS ? i : 0]();
    parts[0]();
    const double mine = BLOCKS * BYTES;
    // the C library's own blocks
    ledger("bytes", 2 * mine, 2 * mine);
    ledger("of_bytes", (FUNCTIONS + 1) * mine, (FUNCTIONS + 1) * mine + 20000);
    ledger_name("where", "load1");
    ledger("stands_out", 0, 0);
    return 0;
}
