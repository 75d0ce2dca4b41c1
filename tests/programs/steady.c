// SPDX-License-Identifier: Apache-2.0
// steady N: N pairs of malloc and free over always the same stacks and sizes.
#include <stdlib.h>

#define DEPTHS 50
#define KEPT 64

static void *kept[KEPT];

__attribute__((noinline)) static void descend(int depth, size_t at) {
    if (depth) {
        descend(depth - 1, at);
        __asm__ volatile("");
        return;
    }
    free(kept[at]);
    kept[at] = malloc(at * 20 + 1);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    for (long i = 0; i < count; i++) descend((int)(i % DEPTHS), (size_t)i % KEPT);
    for (size_t i = 0; i < KEPT; i++) free(kept[i]);
    return 0;
}
