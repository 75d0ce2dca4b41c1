// SPDX-License-Identifier: Apache-2.0
// A test that was run for both commits; that of the twin is new at the second, so that there is
// nothing to compare it with.
//
// claim: not_moved
// file: history
// run-0: new
// flags: -O2
#include "ledger.h"

int main(void) {
    for (int i = 0; i < 100; i++) seen = malloc(1000);
    ledger("tests", 1, 1);
    return 0;
}
