// SPDX-License-Identifier: Apache-2.0
// steady N: N pairs of malloc and free over always the same stacks and sizes.
// steady slow N: beside a large block, N rounds of 50 blocks of 10,000 bytes, each freed at once,
// 50 ms apart: what is live stays, while 10 MB a second are allocated at most.
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static int run_slowly(int rounds) {
    const struct timespec pause = {.tv_nsec = 50000000};
    void *held = malloc(256 << 20);
    for (int i = 0; i < rounds; i++) {
        for (int at = 0; at < 50; at++) free(malloc(10000));
        nanosleep(&pause, NULL);
    }
    free(held);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "slow")) return run_slowly(atoi(argv[2]));
    long count = argc > 1 ? atol(argv[1]) : 1000;
    for (long i = 0; i < count; i++) descend((int)(i % DEPTHS), (size_t)i % KEPT);
    for (size_t i = 0; i < KEPT; i++) free(kept[i]);
    return 0;
}
