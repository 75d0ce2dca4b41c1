// SPDX-License-Identifier: Apache-2.0
// Blocks that are equal, beside free memory between others; of the twin's more is free than equal.
//
// claim: now_waste
// file: now
// flags: -O2
#include "now.h"

enum { FREED = 5 * MIB, BLOCKS = FREED / BLOCK, KEPT_EVERY = 50, EQUAL = (HOLDS ? 10 : 3) * MIB };

int main(void) {
    static uint64_t *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = take_block(0);
    take_blocks(EQUAL, 1);
    for (int i = 0; i < BLOCKS; i++)
        if (i % KEPT_EVERY) free(blocks[i]);
    ledger("bytes", EQUAL, EQUAL * 1.1);
    ledger("wasted_bytes", EQUAL * 0.95, EQUAL * 1.05);
    wait_for_input();
    return seen == NULL;
}
