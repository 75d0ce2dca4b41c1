// SPDX-License-Identifier: Apache-2.0
// Allocates below 2,000 frames of recursion, leaking one block of 64 bytes at the bottom and one of
// 32 bytes at every 500th level.
#include <stdlib.h>

#define LEVELS 2000

static void *volatile sink;

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int descend(int level) {
    if (level == LEVELS) {
        sink = malloc(64);
        return 0;
    }
    if (level % 500 == 0) sink = malloc(32);
    int below = descend(level + 1);
    __asm__ volatile("" ::: "memory");
    return below + 1;
}

int main(void) {
    return descend(0) == LEVELS ? 0 : 1;
}
