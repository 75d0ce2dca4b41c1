// SPDX-License-Identifier: Apache-2.0
// Stacks that differ in addresses alone: a loop that is unrolled calls from many places of one
// line. It says "ready", and holds what it keeps until its input ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TURNS = 50, EACH = 4, STEPS = 8, SIZE = 100, SPOILT = 20, PAGE = 4096 };
static char *kept[TURNS * EACH * STEPS];
static size_t count, at;

// Four calls of one line: each returns to another address.
#define FOUR(call) ((call), (call), (call), (call))

__attribute__((noinline)) static void keep(void) {
    char *block = malloc(SIZE);
    if (block) memset(block, 1, SIZE);
    kept[count++] = block;
}

__attribute__((noinline)) static void fill(void) {
    for (int turn = 0; turn < TURNS; turn++) FOUR(keep());
}

// Writes a byte behind a block, where the allocator has room.
__attribute__((noinline)) static void spoil(void) {
    volatile char *block = malloc(SPOILT);
    if (block) block[SPOILT] = 1;
    free((void *)block);
}

static void *map(void) {
    return mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
    for (int step = 0; step < STEPS; step++) fill();
    for (size_t i = 0; i + 2 * EACH <= count; i += 2 * EACH) FOUR(free(kept[at++]));
    FOUR(spoil());
    FOUR(map());
    printf("ready\n");
    fflush(stdout);
    getchar();
    return 0;
}
