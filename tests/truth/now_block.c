// SPDX-License-Identifier: Apache-2.0
// One block that is nearly all there is; the twin has as much in many.
//
// claim: now_block
// file: now
// flags: -O2
#include "now.h"

int main(void) {
    const double bytes = 48 * MIB;
    if (HOLDS) {
        uint64_t *words = malloc((size_t)bytes);
        for (size_t i = 0; i < (size_t)bytes / sizeof *words; i++) words[i] = next_random();
        seen = words;
    } else {
        take_blocks((size_t)bytes, 0);
    }
    ledger("bytes", bytes, bytes * 1.01);
    wait_for_input();
    return seen == NULL;
}
