// SPDX-License-Identifier: Apache-2.0
// One call site must have most of what was never touched; in its twin two have as much, so that it
// cannot be known which one it is, and none is named. Small blocks of many sizes have no page of
// their own: as many bytes of them make nothing unsure.
//
// claim: untouched
// both: where
// flags: -O2
// needs: look-at-peak
#include "ledger.h"

enum { BYTES = 16 << 20, ROWS = 80000, ROW_BYTES = 100, ROW_MORE = 40 };

APART static void fill(void) {
    char *table = malloc(HOLDS ? BYTES / 8 : BYTES);
    seen = memset(table, 1, HOLDS ? BYTES / 8 : BYTES);
}

APART static void keep_rows(void) {
    for (int i = 0; i < ROWS; i++) seen = memset(malloc(ROW_BYTES + i % ROW_MORE), 1, ROW_BYTES);
}

APART static void reserve(void) {
    char *buffer = malloc(BYTES);
    seen = memset(buffer, 1, 4096);
}

int main(void) {
    fill();
    keep_rows();
    reserve();
    wait_ms(700);
    if (HOLDS)
        ledger_name("where", "reserve");
    else
        ledger_name("where", "");
    return 0;
}
