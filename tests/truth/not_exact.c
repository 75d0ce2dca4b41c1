// SPDX-License-Identifier: Apache-2.0
// A program that leaves no room for stacks; its twin has few of them.
//
// claim: not_exact
// flags: -O1
// run-1: --sample
#include "ledger.h"

enum { CALLS = 20000 };

int main(void) {
    for (int i = 0; i < CALLS; i++) {
        seen = malloc(100);
        free(seen);
    }
    ledger("is_sampled", 1, 1);
    return 0;
}
