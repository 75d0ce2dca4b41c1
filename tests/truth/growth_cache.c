// SPDX-License-Identifier: Apache-2.0
// A cache that is filled at once, and by a little more after its last snapshot; beside it little is
// kept. The twin keeps much.
//
// claim: growth_none
// flags: -O2
#include "ledger.h"

enum { CACHED = 1000, CACHED_BYTES = 10000, ROUNDS = 240, TEMPORARY = 20 };
enum { KEPT_BYTES = HOLDS ? 100 : 5000 };

APART static void fill_cache(void) {
    for (int i = 0; i < CACHED; i++) seen = memset(malloc(CACHED_BYTES), 1, CACHED_BYTES);
}

APART static void keep(void) {
    seen = malloc(KEPT_BYTES);
}

int main(void) {
    fill_cache();
    for (int i = 0; i < ROUNDS; i++) {
        keep();
        for (int j = 0; j < TEMPORARY; j++) {
            void *block = malloc(3000);
            seen = block;
            free(block);
        }
        wait_ms(10);
    }
    ledger("least_bytes", CACHED * CACHED_BYTES / 100, CACHED * CACHED_BYTES / 100 * 1.1);
    return 0;
}
