// SPDX-License-Identifier: Apache-2.0
// A few blocks are drawn of one function's many, too few to say whose they are; of its twin each
// block is known.
//
// claim: largest_unknown
// true: of_bytes
// run-1: --sample --rate 64KiB
// flags: -O2
#include "ledger.h"

enum { BLOCKS = 2000, BYTES = 500 };

APART static void *load(void) {
    return malloc(BYTES);
}

int main(void) {
    for (int i = 0; i < BLOCKS; i++) seen = load();
    const double mine = BLOCKS * BYTES;
    // an estimate of some fifteen samples
    ledger("of_bytes", mine / 5, mine * 4);
    return 0;
}
