// SPDX-License-Identifier: Apache-2.0
// A program that allocates the same at both commits; its twin leaves one byte more at the second.
//
// claim: not_moved
// file: history
// flags: -O2
// flags: -O0 -s
#include "ledger.h"

enum { BYTES = 1000, BLOCKS = 100 };

int main(int count, char **words) {
    const int is_after = count > 1 && !strcmp(words[1], "after");
    for (int i = 0; i < BLOCKS; i++) seen = malloc(BYTES);
    seen = malloc(BYTES + (!HOLDS && is_after));
    ledger("tests", 1, 1);
    ledger("new_tests", 0, 0);
    return 0;
}
