// SPDX-License-Identifier: Apache-2.0
// Each block has a stack of its own, so that recording takes more memory than the program; its twin
// makes the same blocks from two stacks.
//
// claim: recording_cost
// flags: -O1 -fno-optimize-sibling-calls
#include "ledger.h"

enum { LEVELS = 17, BYTES = 48 };

static void take(void) {
    seen = malloc(BYTES);
}

static void walk(unsigned path, int level);

__attribute__((noinline)) static void left(unsigned path, int level) {
    walk(path, level);
    __asm__ volatile("");
}

__attribute__((noinline)) static void right(unsigned path, int level) {
    walk(path, level);
    __asm__ volatile("");
}

__attribute__((noinline)) static void walk(unsigned path, int level) {
    if (!level)
        take();
    else if (HOLDS && path >> (level - 1) & 1)
        left(path, level - 1);
    else
        right(path, level - 1);
    __asm__ volatile("");
}

int main(void) {
    for (unsigned path = 0; path < 1u << LEVELS; path++) walk(path, LEVELS);
    ledger("stacks", 1 << LEVELS, (1 << LEVELS) + 9);
    return 0;
}
