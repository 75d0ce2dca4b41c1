// SPDX-License-Identifier: Apache-2.0
// Buffers of which the first tenth is used, of a process that goes on; its twin fills them.
//
// claim: of_no_use
// both: bytes
// flags: -O2
// file: view
// view: waste
#include "ledger.h"

enum { BUFFERS = 1000, BYTES = 2000 };

APART static char *make_buffer(int number) {
    char *buffer = calloc(1, BYTES);
    unsigned random = (unsigned)number + 1;
    for (int i = 0; i < (HOLDS ? BYTES / 10 : BYTES); i++) {
        random = random * 1103515245u + 12345u;
        buffer[i] = (char)(random >> 16 | 1);
    }
    return buffer;
}

int main(void) {
    static char *buffers[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) buffers[i] = make_buffer(i);
    seen = buffers;
    ledger("bytes", HOLDS ? BUFFERS * BYTES * 0.85 : 0, BUFFERS * BYTES * (HOLDS ? 1.0 : 0.1));
    ledger("of_bytes", BUFFERS * BYTES, BUFFERS * BYTES * 1.1);
    wait_for_input();
    return 0;
}
