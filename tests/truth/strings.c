// SPDX-License-Identifier: Apache-2.0
// A copy of a name for each row; its twin keeps each name once.
//
// claim: strings
// flags: -O2
// file: core save
// saves: bytes at_exit.bytes
#include "ledger.h"

enum { ROWS = 20000, NAMES = 25, BYTES = 120 };

APART static char *take_name(int number) {
    static char *names[NAMES];
    char *name = names[number % NAMES];
    if (name && !HOLDS) return name;
    name = calloc(1, BYTES);
    snprintf(name, BYTES, "the long name of the country with the number %d", number % NAMES);
    return names[number % NAMES] = name;
}

int main(void) {
    static char *rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = take_name(i);
    seen = rows;
    ledger("copies", ROWS - NAMES, ROWS - NAMES);
    ledger("strings", NAMES, NAMES);
    wait_for_input();
    return 0;
}
