// SPDX-License-Identifier: Apache-2.0
// A fixed pseudo-random mixture of allocations from many stacks, with one clear peak in the
// middle: the same calls in every run, so that two profilers must agree to the byte. No realloc:
// profilers differ in what they attribute to it (realloc_chain.c has that). mixed [STEPS]: 200,000
// by default, of sizes that do not depend on it.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS 5000
#define STEPS 200000
#define SIZES 1000
#define KINDS 6

static void *slots[SLOTS];
static uint64_t state = 88172645463325252ull;

static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

typedef void *allocate_function(size_t bytes);
__attribute__((noinline)) static void *as_parser(size_t bytes) {
    void *block = malloc(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}
__attribute__((noinline)) static void *as_cache(size_t bytes) {
    void *block = calloc(1, bytes * 2);
    __asm__ volatile("" ::: "memory");
    return block;
}
__attribute__((noinline)) static void *as_index(size_t bytes) {
    void *block = as_parser(bytes + 7);
    __asm__ volatile("" ::: "memory");
    return block;
}
__attribute__((noinline)) static void *as_buffer(size_t bytes) {
    void *block = NULL;
    if (posix_memalign(&block, 64, bytes * 3)) abort();
    return block;
}
__attribute__((noinline)) static void *as_graph(size_t bytes) {
    void *block = bytes % 2 ? as_index(bytes) : as_cache(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}
__attribute__((noinline)) static void *as_page(size_t bytes) {
    void *block = aligned_alloc(16, (bytes + 15) & ~(size_t)15);
    __asm__ volatile("" ::: "memory");
    return block;
}
static allocate_function *const kinds[KINDS] = {as_parser, as_cache, as_index,
                                                as_buffer, as_graph, as_page};

__attribute__((noinline)) static void step(uint32_t slot, uint32_t kind, size_t bytes) {
    free(slots[slot]);
    slots[slot] = kinds[kind](bytes);
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : STEPS;
    for (int i = 0; i < steps; i++) {
        uint32_t random = next_random();
        // Sizes rise to the middle of the run and fall again.
        size_t scale = (size_t)(i < steps / 2 ? i : steps - i) / (size_t)(steps / SIZES) + 1;
        step(random % SLOTS, random / SLOTS % KINDS, random / 31 % scale + 1);
    }
    for (int i = 0; i < SLOTS; i += 2) {
        free(slots[i]);
        slots[i] = NULL;
    }
    printf("mixed done\n");
    return 0;
}
