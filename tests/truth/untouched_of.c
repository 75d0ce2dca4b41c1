// SPDX-License-Identifier: Apache-2.0
// One call site must have most of what was never touched; in its twin two have as much, so that it
// cannot be known which one it is, and none is named.
//
// claim: untouched
// both: where
// flags: -O2
// needs: look-at-peak
#include "ledger.h"

enum { BYTES = 16 << 20 };

APART static void fill(void) {
    char *table = malloc(HOLDS ? BYTES / 8 : BYTES);
    seen = memset(table, 1, HOLDS ? BYTES / 8 : BYTES);
}

APART static void reserve(void) {
    char *buffer = malloc(BYTES);
    seen = memset(buffer, 1, 4096);
}

int main(void) {
    fill();
    reserve();
    wait_ms(700);
    if (HOLDS)
        ledger_name("where", "reserve");
    else
        ledger_name("where", "");
    return 0;
}
