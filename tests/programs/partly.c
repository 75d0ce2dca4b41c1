// SPDX-License-Identifier: Apache-2.0
// `partly`: holds blocks of two stacks, 32 MiB each; writes to all of the first ones and a quarter
// of the others, waits for a line of input, and frees them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 32, BYTES = 1 << 20, PART = 4 };

static __attribute__((noinline)) char *written_block(void) {
    return malloc(BYTES);
}

static __attribute__((noinline)) char *reserved_block(void) {
    return malloc(BYTES);
}

int main(void) {
    static char *written[BLOCKS], *reserved[BLOCKS];
    char line[16];
    for (int i = 0; i < BLOCKS; i++) {
        written[i] = written_block();
        reserved[i] = reserved_block();
        if (!written[i] || !reserved[i]) return 1;
        memset(written[i], 1, BYTES);
        memset(reserved[i], 1, BYTES / PART);
    }
    puts("held");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    for (int i = 0; i < BLOCKS; i++) {
        free(written[i]);
        free(reserved[i]);
    }
    return 0;
}
