// SPDX-License-Identifier: Apache-2.0
// Buffers of which the first tenth is used; its twin fills them.
//
// claim: waste
// flags: -O2
// file: core save
// saves: bytes at_exit.bytes
#include "ledger.h"

enum { BUFFERS = 1000, BYTES = 2000 };

APART static char *make_buffer(int number) {
    char *buffer = calloc(1, MENDED ? BYTES / 10 : BYTES);
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
    ledger("bytes", BUFFERS * BYTES * 0.85, BUFFERS * BYTES);
    wait_for_input();
    return 0;
}
