// SPDX-License-Identifier: Apache-2.0
// Blocks, equal to each other, of which one in twenty is still referred to; the twin has kept all
// of them. Leaks are told before what is redundant.
//
// claim: now_leaked
// file: now
// flags: -O2
#include "now.h"

enum { KEPT = 20 };

static uint64_t *kept[1 << 14];

int main(void) {
    const double bytes = 8 * MIB, leaked = bytes - bytes / KEPT;
    for (size_t i = 0; i < (size_t)bytes / BLOCK; i++) {
        uint64_t *block = take_block(1);
        if (!HOLDS || i % KEPT == 0) kept[i] = block;
    }
    ledger("bytes", bytes, bytes * 1.1);
    ledger("leaked_bytes", leaked * 0.98, leaked * 1.05);
    wait_for_input();
    return seen == kept[0];
}
