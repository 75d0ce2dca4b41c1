// SPDX-License-Identifier: Apache-2.0
// Programs that are asked what would make them smaller.
#ifndef TESTS_TRUTH_REMEDY_H
#define TESTS_TRUTH_REMEDY_H

#include "ledger.h"

enum { BLOCKS = 20000, BYTES = 1000, CHUNK = BYTES + 8, PAGES = 8 * 4096 };

// Takes some twenty megabytes, and gives back all but the last block, which keeps the heap's end.
static inline void take_blocks(int are_freed) {
    static char *kept[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) kept[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = 0; are_freed && i < BLOCKS - 1; i++) free(kept[i]);
    seen = kept;
}

#endif
