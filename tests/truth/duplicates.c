// SPDX-License-Identifier: Apache-2.0
// Blocks that have one of ten contents, which are no text; those of the twin all differ.
//
// claim: duplicates
// flags: -O2
// file: view
// view: waste
#include "ledger.h"

enum { BLOCKS = 1000, CONTENTS = 10, BYTES = 400 };

APART static unsigned *make_block(unsigned number) {
    unsigned *block = malloc(BYTES);
    for (unsigned i = 0; i < BYTES / sizeof *block; i++) block[i] = (number + 1) * 2654435761u + i;
    return block;
}

int main(void) {
    static unsigned *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = make_block(HOLDS ? i % CONTENTS : i);
    seen = blocks;
    ledger_name("where", "make_block");
    ledger("copies", BLOCKS - CONTENTS, BLOCKS - CONTENTS);
    ledger("contents", CONTENTS, CONTENTS);
    ledger("bytes", (BLOCKS - CONTENTS) * BYTES, (BLOCKS - CONTENTS) * BYTES);
    wait_for_input();
    return 0;
}
