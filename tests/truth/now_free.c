// SPDX-License-Identifier: Apache-2.0
// A heap whose blocks were freed but for some that pin it; the twin frees none.
//
// claim: now_free
// file: now
// flags: -O2
#include "now.h"

enum { BLOCKS = 8 * MIB / BLOCK, KEPT_EVERY = 50 };

int main(void) {
    static uint64_t *blocks[BLOCKS];
    size_t freed = 0;
    for (int i = 0; i < BLOCKS; i++) blocks[i] = take_block(0);
    for (int i = 0; HOLDS && i < BLOCKS; i++) {
        if (i % KEPT_EVERY == 0) continue;
        free(blocks[i]);
        freed += BLOCK;
    }
    ledger("bytes", (double)freed * 0.9, (double)freed * 1.1);
    wait_for_input();
    return seen != NULL;
}
