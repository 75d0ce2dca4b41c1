// SPDX-License-Identifier: Apache-2.0
// Blocks that are equal; those of the twin differ.
//
// claim: now_waste
// file: now
// flags: -O2
#include "now.h"

int main(void) {
    const double bytes = 8 * MIB;
    take_blocks((size_t)bytes, HOLDS);
    ledger("bytes", bytes, bytes * 1.1);
    ledger("wasted_bytes", bytes * 0.95, bytes * 1.05);
    wait_for_input();
    return seen == NULL;
}
