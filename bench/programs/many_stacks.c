// SPDX-License-Identifier: Apache-2.0
// Allocates from many stacks for some time: many_stacks STACKS SECONDS. A stack is a way through a
// tree of calls of two functions, so that all share frames as those of a real program do. Each
// stack keeps two blocks on average, and about ten thousand pairs a second are made.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 20, KEPT = 2, PAIRS_A_PAUSE = 100, PAUSE_NS = 10000000 };

static void **blocks;

static void *left(uint32_t way, int depth, size_t size);
static void *right(uint32_t way, int depth, size_t size);

static inline __attribute__((always_inline)) void *go(uint32_t way, int depth, size_t size) {
    void *block = !depth     ? malloc(size)
                  : way & 1u ? right(way >> 1, depth - 1, size)
                             : left(way >> 1, depth - 1, size);
    __asm__ volatile("" : "+r"(block));  // no tail call: each call is a frame
    return block;
}

static __attribute__((noinline)) void *left(uint32_t way, int depth, size_t size) {
    return go(way, depth, size);
}

static __attribute__((noinline)) void *right(uint32_t way, int depth, size_t size) {
    return go(way, depth, size);
}

int main(int argc, char **argv) {
    const uint32_t factor = 2654435761u;
    uint32_t stacks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 10);
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    blocks = calloc((size_t)stacks * KEPT, sizeof *blocks);
    if (!blocks || !stacks) return 1;
    for (uint32_t i = 0; i < stacks; i++) blocks[i] = left(i, DEPTH, 16 + i % 1000);
    puts("ready");
    fflush(stdout);
    for (uint32_t count = 0; time(NULL) < end;) {
        for (int pair = 0; pair < PAIRS_A_PAUSE; pair++, count++) {
            uint32_t slot = count * factor % (stacks * KEPT);
            free(blocks[slot]);
            blocks[slot] = left(slot % stacks, DEPTH, 16 + count % 1000);
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}
