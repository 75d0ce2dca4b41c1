// SPDX-License-Identifier: Apache-2.0
// Memory that the program maps itself; the twin takes it from malloc.
//
// claim: now_other
// file: now
// flags: -O2
// flags: -O0 -s
#include "now.h"

int main(void) {
    const size_t bytes = 12 * MIB;
    if (HOLDS)
        map_touched(bytes);
    else
        take_blocks(bytes, 0);
    ledger("bytes", (double)bytes, (double)bytes * 1.1);
    ledger_name("what", "mapped by the program");
    wait_for_input();
    return seen != NULL;
}
