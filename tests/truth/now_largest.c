// SPDX-License-Identifier: Apache-2.0
// Memory in three parts of like size, of which that in use is the largest; the twin maps most of
// it.
//
// claim: now_largest
// file: now
// flags: -O2
#include "now.h"

int main(void) {
    take_blocks(BLOCK, 0);
    file_bytes();  // with what looking takes from files
    const size_t files = file_bytes(), used = files / 10 * 12;
    take_blocks(used, 0);
    map_touched(HOLDS ? files : files * 10);
    ledger("bytes", (double)used, (double)used * 1.1);
    ledger_name("what", "in use in glibc's malloc");
    wait_for_input();
    return seen == NULL;
}
