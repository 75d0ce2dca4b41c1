// SPDX-License-Identifier: Apache-2.0
// A store that grows after cairn has attached; that of its twin replaces what was there before.
//
// claim: growth
// file: attach
// flags: -O2
#include "ledger.h"

enum { ROUNDS = 230, EACH = 40, BYTES = 1000 };

static char *sessions[ROUNDS * EACH];

APART static char *open_session(void) {
    return memset(malloc(BYTES), 1, BYTES);
}

APART static void serve(void) {
    char *page = malloc(100000);
    seen = page;
    free(page);
}

int main(void) {
    const double all = (double)ROUNDS * EACH * BYTES;
    for (int i = 0; i < ROUNDS * EACH; i++) sessions[i] = malloc(BYTES);
    wait_for_input();
    for (int i = 0; i < ROUNDS * EACH; i++) {
        if (!HOLDS) free(sessions[i]);
        sessions[i] = open_session();
        serve();
        if (i % EACH == 0) wait_ms(11);
    }
    ledger("last_bytes", all * 0.9, all * 1.1);
    return 0;
}
