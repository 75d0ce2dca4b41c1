// SPDX-License-Identifier: Apache-2.0
// Grows and shrinks blocks by realloc: in place, moved, across the mmap threshold, to nothing, and
// with requests that fail. Allocation and growth happen in functions with different names.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static char *chain_begin(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, 'c', bytes);
    return block;
}

__attribute__((noinline)) static char *chain_grow(char *block, size_t bytes) {
    char *grown = realloc(block, bytes);
    if (!grown) abort();
    return grown;
}

__attribute__((noinline)) static char *chain_shrink(char *block, size_t bytes) {
    char *shrunk = realloc(block, bytes);
    if (!shrunk) abort();
    return shrunk;
}

__attribute__((noinline)) static int chain_fail(char *block) {
    volatile size_t huge = SIZE_MAX / 2;
    return realloc(block, huge) == NULL;
}

int main(void) {
    char *kept[8];
    int failures = 0;
    for (int i = 0; i < 8; i++) {
        char *block = chain_begin((size_t)(16 + i));
        for (size_t bytes = 32; bytes < 600000; bytes = bytes * 3 / 2 + (size_t)i)
            block = chain_grow(block, bytes);
        failures += chain_fail(block);
        for (size_t bytes = 500000; bytes > 1000; bytes = bytes * 2 / 3)
            block = chain_shrink(block, bytes);
        if (block[0] != 'c' || block[15] != 'c') return 1;
        kept[i] = block;
    }
    for (int i = 0; i < 4; i++) free(kept[i]);
    if (realloc(kept[4], 0) != NULL) return 1;
    printf("%d requests failed\n", failures);
    return failures == 8 ? 0 : 1;
}
