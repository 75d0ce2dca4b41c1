// SPDX-License-Identifier: Apache-2.0
// Loses a known amount in known functions: leak_small 100 blocks of 24 bytes, leak_large 3 blocks
// of 50,000 bytes, leak_shared 10 blocks of 1,000 bytes from two callers. Everything else is freed.
#include <stdlib.h>
#include <string.h>

static void *volatile sink;

__attribute__((noinline)) static void leak_small(void) {
    for (int i = 0; i < 100; i++) sink = malloc(24);
}

__attribute__((noinline)) static void leak_large(void) {
    for (int i = 0; i < 3; i++) {
        char *block = malloc(50000);
        memset(block, 1, 50000);
        sink = block;
    }
}

__attribute__((noinline)) static void leak_shared(int count) {
    for (int i = 0; i < count; i++) sink = calloc(10, 100);
}

__attribute__((noinline)) static void caller_one(void) {
    leak_shared(4);
    sink = NULL;
}

__attribute__((noinline)) static void caller_two(void) {
    leak_shared(6);
    sink = NULL;
}

__attribute__((noinline)) static void work(void) {
    void *blocks[64];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 64; i++) blocks[i] = malloc((size_t)(i * 37 + round + 1));
        for (int i = 0; i < 64; i++) free(blocks[i]);
    }
}

int main(void) {
    leak_small();
    work();
    leak_large();
    caller_one();
    caller_two();
    work();
    return 3;
}
