// SPDX-License-Identifier: Apache-2.0
// Holds 20,000 blocks of 500 bytes, says "holding", and waits for the end of its input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 20000
#define BLOCK_BYTES 500

static void *volatile held[BLOCKS];

int main(void) {
    for (int i = 0; i < BLOCKS; i++) {
        held[i] = malloc(BLOCK_BYTES);
        memset(held[i], 'h', BLOCK_BYTES);
    }
    if (write(STDOUT_FILENO, "holding\n", 8) != 8) return 1;
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
