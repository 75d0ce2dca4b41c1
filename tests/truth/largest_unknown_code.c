// SPDX-License-Identifier: Apache-2.0
// A program without names, of which the address of the largest call site is told; the functions of
// the twin have theirs.
//
// claim: largest_unknown
// flags: -O2 -s -Wl,--export-dynamic-symbol=load_all -Wl,--export-dynamic-symbol=load_few
#include "ledger.h"

enum { BLOCKS = 2000, BYTES = 500, FEW = 300 };

#if HOLDS
#define OWN static
#else
#define OWN
void *load_all(void);
void *load_few(void);
#endif

OWN APART void *load_all(void) {
    return malloc(BYTES);
}

OWN APART void *load_few(void) {
    return malloc(BYTES);
}

int main(void) {
    for (int i = 0; i < BLOCKS; i++) seen = load_all();
    for (int i = 0; i < FEW; i++) seen = load_few();
    ledger("of_bytes", (BLOCKS + FEW) * BYTES, (BLOCKS + FEW) * BYTES + 8192);
    ledger_name("why", "the functions of most of it have no name; the largest call site is "
                       "largest_unknown_code-0-1+0x");
    return 0;
}
