// SPDX-License-Identifier: Apache-2.0
// Blocks that are used and differ; those of the twin are equal.
//
// claim: now_used
// file: now
// flags: -O2
#include "now.h"

int main(void) {
    const double bytes = 8 * MIB;
    take_blocks((size_t)bytes, !HOLDS);
    ledger("bytes", bytes, bytes * 1.1);
    ledger("wasted_bytes", 0, bytes * 0.05);
    wait_for_input();
    return seen == NULL;
}
