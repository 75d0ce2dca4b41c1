// SPDX-License-Identifier: Apache-2.0
// A function that frees what it allocates; the blocks of its twin are freed by another one.
//
// claim: reuse
// flags: -O1
// run: --free-stacks
// saves: calls totals.allocations
#include "ledger.h"

enum { CALLS = 20000, BYTES = 120 };

APART static void drop(char *name) {
    free(name);
    __asm__ volatile("");  // no tail call
}

APART static void drop_later(char *name) {
    static char *last;
    drop(last);
    last = name;
    __asm__ volatile("");
}

APART static char *greet(int number) {
    static char *buffer;
    char *name = buffer ? buffer : malloc(BYTES);
    if (MENDED) buffer = name;
    snprintf(name, BYTES, "user %d", number);
    seen = name;
    if (HOLDS && !MENDED) free(name);
    return name;
}

APART static void later(char *name, int depth) {
    if (depth)
        later(name, depth - 1);
    else
        drop_later(name);
    __asm__ volatile("");
}

int main(void) {
    seen = malloc(1);
    for (int i = 0; i < CALLS; i++) {
        char *name = greet(i);
        if (!HOLDS) later(name, 4);
    }
    ledger("blocks", CALLS, CALLS);
    ledger("block_bytes", BYTES, BYTES);
    ledger_name("where", "greet");
    return 0;
}
