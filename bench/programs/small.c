// SPDX-License-Identifier: Apache-2.0
// A small program: a heap of 1 MiB in blocks of 128 bytes, allocated by a few stacks. Then it says
// so, and waits until its input ends (bench/resident.py looks at its memory meanwhile).
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 8192, BLOCK_BYTES = 112, STACKS = 16 };

static void *blocks[BLOCKS];

static __attribute__((noinline)) void *allocate(unsigned depth) {
    void *block = depth ? allocate(depth - 1) : malloc(BLOCK_BYTES);
    __asm__ volatile("" : "+r"(block));
    return block;
}

int main(void) {
    char byte = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(i % STACKS);
        *(char *)blocks[i] = 1;
    }
    if (write(STDOUT_FILENO, &byte, 1) != 1) return 1;
    return read(STDIN_FILENO, &byte, 1) < 0;
}
