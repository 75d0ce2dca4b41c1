// SPDX-License-Identifier: Apache-2.0
// Blocks that are all in use; the twin freed those below one that stays.
//
// claim: remedy_none
// flags: -O2
// file: view
// view: remedies
#include "remedy.h"

int main(void) {
    take_blocks(!HOLDS);
    ledger("free_bytes", 0, 0);
    wait_for_input();
    return 0;
}
