// SPDX-License-Identifier: Apache-2.0
// Short-lived blocks of one call site; in its twin of twelve, none of which has most of them.
//
// claim: short_lived
// both: is_most where_blocks
// flags: -O2
#include "ledger.h"

enum { CALLS = 40000, SITES = 12 };

#define SITE(n)                                                                                    \
    APART static void site_##n(void) {                                                             \
        seen = malloc(n + 24);                                                                     \
        free(seen);                                                                                \
    }                                                                                              \
    _Static_assert(n < SITES, "the last one")
SITE(0);
SITE(1);
SITE(2);
SITE(3);
SITE(4);
SITE(5);
SITE(6);
SITE(7);
SITE(8);
SITE(9);
SITE(10);
SITE(11);

int main(void) {
    void (*const sites[SITES])(void) = {site_0, site_1, site_2, site_3, site_4,  site_5,
                                        site_6, site_7, site_8, site_9, site_10, site_11};
    // not in turn, so that chance decides which of them are watched
    unsigned random = 1;
    for (int i = 0; i < CALLS; i++) {
        random = random * 1103515245u + 12345u;
        sites[HOLDS ? 0 : (random >> 16) % SITES]();
    }
    ledger("is_most", HOLDS, HOLDS);
    ledger("where_blocks", HOLDS ? CALLS * 0.9 : 0, HOLDS ? CALLS * 1.1 : CALLS / 2);
    return 0;
}
