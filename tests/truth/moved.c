// SPDX-License-Identifier: Apache-2.0
// A program that allocates more at the second commit; its twin allocates the same.
//
// claim: moved
// file: history
// flags: -O2
#include "ledger.h"

enum { BYTES = 1000, BEFORE = 100, AFTER = 150 };

int main(int count, char **words) {
    const int blocks = HOLDS && count > 1 && !strcmp(words[1], "after") ? AFTER : BEFORE;
    for (int i = 0; i < blocks; i++) seen = malloc(BYTES);
    ledger_name("what", "peak");
    ledger("before", BEFORE * BYTES, BEFORE * BYTES + 10000);  // with the C library's own
    ledger("after", AFTER * BYTES, AFTER * BYTES + 10000);
    return 0;
}
