// SPDX-License-Identifier: Apache-2.0
// A leak by one call site that three functions call: one finding, of all three. In its twin two of
// them give back what they took.
//
// claim: growth
// both: stacks last_bytes
// flags: -O2
#include "ledger.h"

enum { ROUNDS = 220, EACH = 30, BYTES = 500 };

APART static char *open_session(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

APART static char *by_web(void) {
    return open_session();
}

APART static char *by_mail(void) {
    return open_session();
}

APART static char *by_hand(void) {
    return open_session();
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < EACH; j++) {
            char *web = by_web(), *mail = by_mail();
            seen = by_hand();
            if (!HOLDS) free(web), free(mail);
        }
        free(malloc(200000));
        wait_ms(11);
    }
    const double all = (double)ROUNDS * EACH * BYTES * (HOLDS ? 3 : 1);
    ledger("stacks", HOLDS ? 3 : 1, HOLDS ? 3 : 1);
    ledger("last_bytes", all * 0.95, all);
    ledger_name("where", "open_session");
    return 0;
}
