// SPDX-License-Identifier: Apache-2.0
// pairs MODE DEPTH STACKS PAIRS: nanoseconds of a malloc+free pair from stacks of a given depth.
//   one      one stack again and again
//   walk     STACKS stacks in the order of a walk over a tree: neighbours share most frames
//   random   STACKS stacks in random order
//   never    stacks that never repeat
//   ring     one stack, blocks live for 1,000 further allocations
// Prints the nanoseconds a pair. Frames differ by their call site: every level calls the next from
// one of four places, chosen by two bits of the stack's number.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RING = 1000, BLOCK_BYTES = 48 };

static void *ring[RING];
static unsigned ring_at;
static int has_ring;

__attribute__((noinline)) static void leaf(void) {
    void *block = malloc(BLOCK_BYTES);
    __asm__ volatile("" : : "r"(block) : "memory");
    if (!has_ring) {
        free(block);
        return;
    }
    free(ring[ring_at]);
    ring[ring_at] = block;
    ring_at = (ring_at + 1) % RING;
}

// Bits of `path` choose the call site, outermost level first; above the 32nd level they repeat.
__attribute__((noinline)) static void level(unsigned depth, uint64_t path, unsigned repeat) {
    if (depth == 0) {
        for (unsigned i = 0; i < repeat; i++) leaf();
        return;
    }
    uint64_t rest = path >> 2 | path << 62;
    switch (path & 3) {
    case 0:
        level(depth - 1, rest, repeat);
        break;
    case 1:
        level(depth - 1, rest, repeat);
        __asm__ volatile("nop");
        break;
    case 2:
        level(depth - 1, rest, repeat);
        __asm__ volatile("nop;nop");
        break;
    default:
        level(depth - 1, rest, repeat);
        __asm__ volatile("nop;nop;nop");
    }
    __asm__ volatile("");
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

// The stack's number as a path whose low digits lie innermost, so that neighbours share the outer
// frames.
static uint64_t path_of(uint64_t number, unsigned depth) {
    uint64_t path = 0;
    unsigned levels = depth < 32 ? depth : 32;
    for (unsigned i = 0; i < levels; i++) {
        path |= (number & 3) << (2 * (levels - 1 - i));
        number >>= 2;
    }
    return path;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const char *mode = argv[1];
    unsigned depth = (unsigned)atoi(argv[2]);
    uint64_t stacks = strtoull(argv[3], NULL, 10), pairs = strtoull(argv[4], NULL, 10);
    uint64_t state = 88172645463325252u;
    has_ring = !strcmp(mode, "ring");
    for (unsigned i = 0; i < RING; i++) free(malloc(BLOCK_BYTES));
    double start = now_ns();
    if (!strcmp(mode, "one") || has_ring) {
        level(depth, 0, (unsigned)pairs);
    } else {
        for (uint64_t i = 0; i < pairs; i++) {
            uint64_t number = i % stacks;
            if (!strcmp(mode, "random")) {
                state ^= state << 13, state ^= state >> 7, state ^= state << 17;
                number = state % stacks;
            }
            if (!strcmp(mode, "never")) number = i;
            level(depth, path_of(number, depth), 1);
        }
    }
    printf("%.2f\n", (now_ns() - start) / (double)pairs);
    return 0;
}
