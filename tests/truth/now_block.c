// SPDX-License-Identifier: Apache-2.0
// One block that is nearly all there is; the twin has as much in many.
//
// claim: now_block
// file: now
// flags: -O2
// flags: -O2 -static -s -DIS_REFUSED=1
#include "now.h"

// cairn run refuses a static program without symbols.
#ifndef IS_REFUSED
#define IS_REFUSED 0
#endif

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
    ledger("is_recordable", !IS_REFUSED, !IS_REFUSED);
    wait_for_input();
    return seen == NULL;
}
