// SPDX-License-Identifier: Apache-2.0
// Blocks that were freed below one that stays; the twin keeps them all.
//
// claim: remedy
// flags: -O2
// file: view
// view: remedies
#include "remedy.h"

int main(void) {
    take_blocks(HOLDS);
    ledger_name("what", "malloc_trim(0)");
    ledger("bytes", BLOCKS * CHUNK - PAGES, BLOCKS * CHUNK);
    wait_for_input();
    return 0;
}
